"""The other side of fid_parity_test.cpp: FOLDER gets distances.pt or features.pt.

fid_reference.py distances FOLDER   Frechet distances by numpy, scipy and the packages
fid_reference.py features FOLDER    weights.pth with random weights, and the features that
                                    pytorch-fid and torch-fidelity take with it
"""
import sys

import numpy as np
import torch

SIZES = {"32": (32, 32), "64": (64, 64), "299": (299, 299), "400x300": (300, 400)}


def statistics(rows):
    rows = rows.double().numpy()
    return np.mean(rows, axis=0), np.cov(rows, rowvar=False)


def distance_of_rows(first, second):
    """Exact without full rank: of the rows, not of their covariances."""
    means = [rows.double().mean(0) for rows in (first, second)]
    x, y = [(rows.double() - mean) / (len(rows) - 1) ** 0.5 for rows, mean in zip((first, second), means)]
    mixed = torch.linalg.svdvals(x @ y.T).sum()
    return float((means[0] - means[1]).square().sum() + x.square().sum() + y.square().sum() - 2 * mixed)


def distances():
    from pytorch_fid.fid_score import calculate_frechet_distance
    from torch_fidelity.metric_fid import KEY_METRIC_FID, fid_statistics_to_metric

    torch.manual_seed(1)
    result = {}
    for width, counts in {8: (500, 400), 64: (300, 1000), 200: (1000, 1000), 250: (60, 90)}.items():
        mixing = torch.randn(width, width) / width**0.5
        rows = [torch.relu(0.4 + 0.3 * torch.randn(count, width) @ mixing) + shift
                for count, shift in zip(counts, (0, 0.05))]
        (m1, s1), (m2, s2) = [statistics(part) for part in rows]
        case = {"first": rows[0], "second": rows[1], "rows": distance_of_rows(*rows)}
        case["pytorch-fid"] = float(calculate_frechet_distance(m1, s1, m2, s2))
        stats = [{"mu": m, "sigma": s} for m, s in ((m1, s1), (m2, s2))]
        case["torch-fidelity"] = fid_statistics_to_metric(*stats, False)[KEY_METRIC_FID]
        result[str(width)] = case
    wide = 0.4 + 0.3 * torch.randn(600, 2048)
    mean, covariance = statistics(wide)
    return {"cases": result, "wide": wide, "mean": torch.tensor(mean), "covariance": torch.tensor(covariance)}


def random_weights(path):
    """Activations keep their size through the net, and no batch norm is plain."""
    import torchvision

    net = torchvision.models.inception_v3(num_classes=1008, aux_logits=False, weights=None, init_weights=False)
    for module in net.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.7, 1.4)
            torch.nn.init.normal_(module.bias, 0, 0.2)
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.6, 1.5)
    torch.save(net.state_dict(), path)


def images(count, height, width):
    """Smooth colours under a little noise, from black to white."""
    coarse = torch.rand(count, 3, 5, 5)
    smooth = torch.nn.functional.interpolate(coarse, size=(height, width), mode="bicubic")
    return (255 * (smooth + 0.1 * torch.randn_like(smooth))).round().clamp(0, 255).byte()


def features(folder):
    import pytorch_fid.inception
    from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3

    torch.manual_seed(2)
    path = f"{folder}/weights.pth"
    random_weights(path)
    pytorch_fid.inception.load_state_dict_from_url = lambda *_, **__: torch.load(path)
    first = pytorch_fid.inception.InceptionV3().eval()
    second = FeatureExtractorInceptionV3("inception", ["2048"], feature_extractor_weights_path=path)
    result = {}
    with torch.no_grad():
        for name, (height, width) in SIZES.items():
            count = 6 if name == "32" else 2
            shown = images(count, height, width)
            result[name] = {
                "images": shown,
                "pytorch-fid": first(shown.float() / 255)[0].flatten(1).clone(),
                "torch-fidelity": second(shown)[0].clone(),
            }
    small = result["32"]
    for name in ("pytorch-fid", "torch-fidelity"):
        small[name + "-distance"] = distance_of_rows(small[name][:3], small[name][3:])
    return result


if __name__ == "__main__":
    task, folder = sys.argv[1:]
    made = distances() if task == "distances" else features(folder)
    torch.save(made, f"{folder}/{task}.pt")
