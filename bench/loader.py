"""Images per second of the loader, against torch's DataLoader over Pillow, two workers each.

JPEG files of 500x375 pixels become batches of 64 images of 64x64: decoding, ADM's centre crop,
random flip, tensors, batches. Python decodes the usual way, at full size; with Pillow's
draft mode, which few programs call, and our exact decoding are reported beside it.
Target: ratio_to_python >= 3.
"""
import statistics
import tempfile

import peers

IMAGES = 1000
WORKERS = "2"
ROUNDS = 5
OURS = str(peers.BIN / "loader_worker")
PEER = [peers.peer_python(), str(peers.ROOT / "bench" / "python" / "loader_worker.py")]


def images_per_s(command):
    return peers.run_json(command)["images_per_s"]


def measure(folder):
    """One round of all four, by turns."""
    return {
        "lockstep": images_per_s([OURS, "read", folder, WORKERS, "fast"]),
        "python": images_per_s([*PEER, "read", folder, WORKERS, "full"]),
        "lockstep_exact": images_per_s([OURS, "read", folder, WORKERS, "exact"]),
        "python_draft": images_per_s([*PEER, "read", folder, WORKERS, "draft"]),
    }


def median_ratio(rounds, ours, theirs):
    return statistics.median(r[ours] / r[theirs] for r in rounds)


with tempfile.TemporaryDirectory() as folder:
    peers.run([*PEER, "make", folder, str(IMAGES)])
    rounds = [measure(folder) for _ in range(ROUNDS)]
    difference = peers.run_json([OURS, "compare", folder])["mean_abs_difference"]

peers.report(
    "loader",
    ratio_to_python=median_ratio(rounds, "lockstep", "python"),
    ratio_to_python_draft=median_ratio(rounds, "lockstep", "python_draft"),
    exact_ratio_to_python=median_ratio(rounds, "lockstep_exact", "python"),
    **{f"{k}_images_per_s": statistics.median(r[k] for r in rounds) for k in rounds[0]},
    mean_abs_difference=difference,
    target=3,
)
