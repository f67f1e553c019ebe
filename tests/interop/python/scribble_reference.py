"""The segmentation models of the guide scribble in plain PyTorch, written from its description.

Usage: scribble_reference.py CASES_FILE RESULTS_FILE
       scribble_reference.py --check MODEL_TYPE LAYERS PARAMETERS.tsv

Cases (a dict by name), each:
  sizes    model_type, layers, classes (the arguments of Segmenter)
  weights  the state dict, loaded strictly
  images [B,3,S,S] uint8 (normalised here) or float32 (used as it is); B >= 3: BatchNorm sees
           B values of the pooled map, and two are always -1 and 1, whatever came before
  labels, pseudo, ds, dc  uint8 [B,S,S]: scribbles, pseudo labels (255: none), distance maps
  is_double  1: all in float64, weights and images too (may be left out: fp32). Between fp32
           and float64 a ReLU near its bend can go the other way, and gradients then differ by
           a percent; between two computations in float64 they do not
  settings l_segs, l_pesudo, l_ds, l_dc, l_lorm, label_smooth (numbers; all may be left out: 0)
Results (by the same names), of one training step without dropout:
  features (of the trunk), logits (at their own stride), upsampled (to S), foreground (bool
  [B,h,w], where LoRM attends; only with LoRM), terms (name: sum, normaliser, value; names
  scribble, pseudo, ds, dc, lorm; lorm only of models that have it), total,
  gradients (of parameters that the total reaches), model (the state dict after the step's
  forward: BatchNorm has moved on), eval_logits (upsampled, by the model so moved, in eval mode),
  num_trainable.
--check compares names, shapes, types and kinds with a list, and its number of parameters.
"""
import sys

import torch
from torch import nn
import torch.nn.functional as F

IGNORED = 255
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
BLOCKS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}


def conv(inputs, outputs, kernel, stride=1, dilation=1):
    padding = dilation * (kernel - 1) // 2
    return nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, bias=False)


def resize(x, size):
    return F.interpolate(x, size, mode="bilinear", align_corners=True)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, width, stride, dilation):
        super().__init__()
        # Only the second convolution dilates.
        self.conv1 = conv(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = conv(width, width, 3, 1, dilation)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(inputs, width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, width, stride, dilation):
        super().__init__()
        # As in Caffe the first convolution has the stride.
        self.conv1 = conv(inputs, width, 1, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = conv(width, width, 3, 1, dilation)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = conv(width, 4 * width, 1)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = shortcut(inputs, 4 * width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


def shortcut(inputs, outputs, stride):
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


def stage(block, inputs, width, stride, dilations):
    blocks = []
    for dilation in dilations:
        blocks.append(block(inputs, width, stride, dilation))
        inputs, stride = width * block.expansion, 1
    return nn.Sequential(*blocks)


class AtrousBranch(nn.Module):
    def __init__(self, inputs, outputs, kernel, dilation):
        super().__init__()
        self.atrous_conv = conv(inputs, outputs, kernel, 1, dilation)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.bn(self.atrous_conv(x)))


class AtrousPyramid(nn.Module):
    """The five branches; what is made of them differs between the models."""

    def __init__(self, inputs, width, dilations):
        super().__init__()
        self.aspp1 = AtrousBranch(inputs, width, 1, 1)
        self.aspp2 = AtrousBranch(inputs, width, 3, dilations[0])
        self.aspp3 = AtrousBranch(inputs, width, 3, dilations[1])
        self.aspp4 = AtrousBranch(inputs, width, 3, dilations[2])
        self.global_avg_pool = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), conv(inputs, width, 1), nn.BatchNorm2d(width), nn.ReLU()
        )

    def branches(self, x):
        pooled = resize(self.global_avg_pool(x), x.shape[-2:])
        return torch.cat([self.aspp1(x), self.aspp2(x), self.aspp3(x), self.aspp4(x), pooled], 1)


class ClassPyramid(AtrousPyramid):
    def __init__(self, inputs, classes):
        super().__init__(inputs, classes, (12, 18, 24))
        self.conv1 = conv(5 * classes, classes, 1)
        self.bn1 = nn.BatchNorm2d(classes)

    def forward(self, x):
        return self.bn1(self.conv1(self.branches(x)))


class FeaturePyramid(AtrousPyramid):
    def __init__(self, inputs, dropout):
        super().__init__(inputs, 256, (6, 12, 18))
        self.prject = nn.Sequential(
            conv(5 * 256, 256, 1), nn.BatchNorm2d(256), nn.ReLU(), nn.Dropout(dropout)
        )

    def forward(self, x):
        return self.prject(self.branches(x))


class LoRM(nn.Module):
    """Foreground features should be means of features that are like them."""

    def __init__(self, width):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1))
        self.query_conv = nn.Conv2d(width, width, 1)
        self.key_conv = nn.Conv2d(width, width, 1)

    def forward(self, x, pseudo):
        """The sum of squares, how many of them are not 0, and where the foreground is."""
        foreground = foreground_of(pseudo, x.shape[-2:])
        q, k = self.query_conv(x).flatten(2), self.key_conv(x).flatten(2)
        norms = q.norm(dim=1)[:, :, None] * k.norm(dim=1)[:, None, :]
        weights = (q.transpose(1, 2) @ k / norms).softmax(-1)
        weights = weights * foreground.flatten(1)[:, :, None]
        values = x.flatten(2)
        means = self.gamma * (values @ weights.transpose(1, 2))
        squares = (values - means).square()
        return squares.sum(), squares.count_nonzero(), foreground


def foreground_of(pseudo, size):
    """Class ids are blended like colours: more than 0 means that some foreground is near."""
    ids = torch.where(pseudo == IGNORED, 0, pseudo).float()
    return resize(ids[:, None], size)[:, 0] > 0


class Segmenter(nn.Module):
    def __init__(self, model_type, layers, classes=21, dropout=0.0):
        super().__init__()
        counts = BLOCKS[layers]
        block = Bottleneck if layers >= 50 else BasicBlock
        grown = block.expansion
        width = 512 * grown
        self.model_type = model_type
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = stage(block, 64, 64, 1, [1] * counts[0])
        self.layer2 = stage(block, 64 * grown, 128, 2, [1] * counts[1])
        self.layer3 = stage(block, 128 * grown, 256, 1, [2] * counts[2])
        self.layer4 = stage(block, 256 * grown, 512, 1, [4, 8, 16][: counts[3]])
        if model_type == "deeplabv2":
            self.layer5 = ClassPyramid(width, classes)
        elif model_type == "res50_ASPP_lorm":
            self.layer_pred0 = ClassPyramid(width, classes)
            self.layer_camatt = LoRM(width)
        elif model_type in ("deeplabv3p", "deeplabv3p_lorm"):
            self.layer_pred0 = FeaturePyramid(width, dropout)
            if model_type == "deeplabv3p_lorm":
                self.layer_lorm = LoRM(width)
            self.add_decoder(64 * grown, classes)
        else:
            raise ValueError(f"unknown model type {model_type}")

    def add_decoder(self, low_width, classes):
        self.reduce = nn.Sequential(conv(low_width, 48, 1), nn.BatchNorm2d(48), nn.ReLU())
        self.fuse = nn.Sequential(
            conv(48 + 256, 256, 3),
            nn.BatchNorm2d(256),
            nn.ReLU(),
            conv(256, 256, 3),
            nn.BatchNorm2d(256),
            nn.ReLU(),
        )
        self.classifier = nn.Conv2d(256, classes, 1)

    def lorm(self):
        return getattr(self, "layer_camatt", getattr(self, "layer_lorm", None))

    def forward(self, images):
        """Features of the trunk (stride 8) and logits (stride 8, with a decoder 4)."""
        x = F.relu(self.bn1(self.conv1(images)))
        x = F.max_pool2d(x, 3, 2, 1, ceil_mode=True)
        low = self.layer1(x)
        x = self.layer4(self.layer3(self.layer2(low)))
        if self.model_type == "deeplabv2":
            return x, self.layer5(x)
        high = self.layer_pred0(x)
        if self.model_type == "res50_ASPP_lorm":
            return x, high
        both = torch.cat([self.reduce(low), resize(high, low.shape[-2:])], 1)
        return x, self.classifier(self.fuse(both))


def normalise(images, dtype):
    if images.is_floating_point():
        return images.to(dtype)
    like = {"dtype": dtype, "device": images.device}
    mean, std = (torch.tensor(values, **like).view(1, 3, 1, 1) for values in (MEAN, STD))
    return (images.to(dtype) / 255 - mean) / std


def cross_entropy(logits, labels, smoothing):
    """Sum over labelled pixels, and their number. Smoothing spreads over all classes."""
    is_scored = labels != IGNORED
    target = torch.where(is_scored, labels, 0).long()
    log_p = logits.log_softmax(1)
    hit = log_p.gather(1, target[:, None])[:, 0]
    losses = -(1 - smoothing) * hit - smoothing * log_p.mean(1)
    return (losses * is_scored).sum(), is_scored.sum()


def entropy(logits, distance):
    log_p = logits.log_softmax(1)
    entropies = -(log_p.exp() * log_p).sum(1) * (distance.to(logits.dtype) / 255)
    return entropies.sum(), entropies.count_nonzero()


def compute_terms(model, batch, smoothing):
    """Everything that a training step computes; terms by name: sum and normaliser."""
    images = normalise(batch["images"], model.conv1.weight.dtype)
    features, logits = model(images)
    upsampled = resize(logits, images.shape[-2:])
    terms = {
        "scribble": cross_entropy(upsampled, batch["labels"], 0.0),
        "pseudo": cross_entropy(upsampled, batch["pseudo"], smoothing),
        "ds": entropy(upsampled, batch["ds"]),
        "dc": entropy(upsampled, batch["dc"]),
    }
    seen = {"features": features, "logits": logits, "upsampled": upsampled}
    if model.lorm() is not None:
        *terms["lorm"], seen["foreground"] = model.lorm()(features, batch["pseudo"])
    return terms, seen


WEIGHT_OF_TERM = {
    "scribble": "l_segs",
    "pseudo": "l_pesudo",
    "ds": "l_ds",
    "dc": "l_dc",
    "lorm": "l_lorm",
}


def value_of(term):
    total, normaliser = term
    # Where nothing is scored the sum is 0 as well.
    return total / normaliser.clamp_min(1)


def total_of(terms, settings):
    """Terms without weight take no part: no gradient comes from them, not even 0."""
    weights = {name: float(settings.get(WEIGHT_OF_TERM[name], 0)) for name in terms}
    return sum(weights[name] * value_of(terms[name]) for name in terms if weights[name] != 0)


def run(case):
    model = Segmenter(**case["sizes"])
    model.load_state_dict(case["weights"], strict=True)
    if case.get("is_double", 0):
        model.double()
    settings = case["settings"]
    terms, seen = compute_terms(model, case, float(settings.get("label_smooth", 0)))
    total = total_of(terms, settings)
    total.backward()
    model.eval()
    with torch.no_grad():
        images = normalise(case["images"], model.conv1.weight.dtype)
        eval_logits = resize(model(images)[1], images.shape[-2:])
    return {
        **{name: tensor.detach() for name, tensor in seen.items()},
        "terms": {
            name: {
                "sum": term[0].detach(),
                "normaliser": term[1].detach(),
                "value": value_of(term).detach(),
            }
            for name, term in terms.items()
        },
        "total": total.detach(),
        "gradients": {n: p.grad for n, p in model.named_parameters() if p.grad is not None},
        "model": dict(model.state_dict()),
        "eval_logits": eval_logits,
        "num_trainable": sum(p.numel() for p in model.parameters()),
    }


def listed(model):
    """name: (shape, type, kind), as the lists of parameters have it."""
    kinds = {n: "parameter" if p.requires_grad else "frozen" for n, p in model.named_parameters()}
    return {
        name: (
            "x".join(map(str, tensor.shape)),
            str(tensor.dtype).removeprefix("torch."),
            kinds.get(name, "buffer"),
        )
        for name, tensor in model.state_dict().items()
    }


def check(model, path, ignored=None):
    """Exits with what differs between a model and its list, names that begin so left out."""
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    theirs = {name: tuple(rest) for name, *rest in rows[1:]}
    if ignored is not None:
        theirs = {name: row for name, row in theirs.items() if not name.startswith(ignored)}
    ours = listed(model)
    wrong = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    for name in wrong:
        print(f"{name}: here {ours.get(name)}, in the list {theirs.get(name)}", file=sys.stderr)
    if wrong:
        sys.exit(f"{len(wrong)} differences from {path}")
    print(sum(p.numel() for p in model.parameters()))


def main():
    if sys.argv[1] == "--check":
        check(Segmenter(sys.argv[2], int(sys.argv[3])), sys.argv[4])
        return
    cases = torch.load(sys.argv[1], weights_only=True)
    torch.save({name: run(case) for name, case in cases.items()}, sys.argv[2])


if __name__ == "__main__":
    main()
