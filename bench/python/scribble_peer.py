"""Trains a segmentation model of the guide scribble in eager PyTorch and prints its speed as JSON.

Usage: scribble_peer.py [--size 465] [--batch 16] [--precision fp16|bf16|fp32] [--device cuda|cpu]
                        [--compile] [--model_type res50_ASPP_lorm] [--layers 50] [--channels_last]

All five losses with weight 1 and label smoothing 0.1, SGD with momentum; images and labels lie
on the device. Keys of the line: rate (samples per second, the median of rates), peak_bytes.
"""
import torch
import torch.nn.functional as F

import peer_timing as timing
import scribble_reference as reference

SMOOTHING = 0.1


def entropy_mean(p_log_p, distance):
    weighted = p_log_p * (distance.float() / 255)
    return -weighted.sum() / weighted.count_nonzero()


def make_loss(model):
    def loss(pixels, labels, pseudo, ds, dc):
        images = reference.normalise(pixels, torch.float32)
        features, logits = model(images)
        logits = reference.resize(logits, images.shape[-2:])
        total = F.cross_entropy(logits, labels.long(), ignore_index=reference.IGNORED)
        total = total + F.cross_entropy(
            logits, pseudo.long(), ignore_index=reference.IGNORED, label_smoothing=SMOOTHING
        )
        log_p = F.log_softmax(logits, 1)
        p_log_p = (log_p.exp() * log_p).sum(1)
        total = total + entropy_mean(p_log_p, ds) + entropy_mean(p_log_p, dc)
        if model.lorm() is not None:
            squares, count, _ = model.lorm()(features, pseudo)
            total = total + squares / count
        return total

    return loss


def make_batch(options):
    shape = (options.batch, options.size, options.size)
    like = {"dtype": torch.uint8, "device": options.device}
    pixels = torch.randint(0, 256, (shape[0], 3, *shape[1:]), **like)
    labels = torch.randint(0, 21, shape, **like)
    # 3 % of an image are scribbles; the middle is an object.
    labels[torch.rand(shape, device=options.device) > 0.03] = reference.IGNORED
    pseudo = torch.zeros(shape, **like)
    middle = slice(options.size // 4, 3 * options.size // 4)
    pseudo[:, middle, middle] = 7
    pseudo[:, :, : options.size // 10] = reference.IGNORED
    return pixels, labels, pseudo, *(torch.randint(0, 256, shape, **like) for _ in range(2))


def main():
    parser = timing.parser(__doc__, "fp16")
    parser.add_argument("--size", type=int, default=465)
    parser.add_argument("--model_type", default="res50_ASPP_lorm")
    parser.add_argument("--layers", type=int, default=50)
    parser.add_argument("--channels_last", action="store_true")
    options = parser.parse_args()
    timing.prepare(options)
    torch.backends.cudnn.benchmark = True
    model = reference.Segmenter(options.model_type, options.layers, dropout=0.5)
    model = model.to(options.device)
    if options.channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9, weight_decay=5e-4)
    training = timing.Training(options, model, optimizer, make_loss(model))
    training.report([make_batch(options) for _ in range(timing.NUM_BATCHES)])


if __name__ == "__main__":
    main()
