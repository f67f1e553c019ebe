"""How much a cache of features saves: the recipe atlas with a VGGT that is run in every step, and
with features that were computed once.

Usage: bench/atlas.py [gpu]

Samples per second of the same training, by turns, after the cache is filled; one line of JSON. With
the word gpu (tools/gpu_run python3 bench/atlas.py gpu): a VGGT of random weights as large as VGGT-1B,
2 views of 518 x 518 pixels, batch 8, every 4th row and column of points; on the CPU vggt_tiny and
one thread, and a small fusion. LLaMA is llama_tiny: sentences are few.
On the GPU also frames per second of VGGT within the training without a cache (uncached_frames) and
of VGGT alone (vggt_alone, as in bench/vggt.py): the precision of the training must not slow its heads.
"""
import os
import statistics
import sys
import tempfile

import peers

ROUNDS = 2
BATCH = 8
VIEWS = 2
MAKER = """
import sys
import torch
sys.path.insert(0, "tests/interop/python")
import vggt_reference
with torch.device("cuda"):
    model = vggt_reference.Vggt()
state = {k: v.half().cpu() for k, v in model.state_dict().items()}
torch.save(state, sys.argv[1])
"""


def settings(is_gpu, folder):
    flags = {
        "data_dir": "builtin:reach:8",
        "lang_encoder_name": "llama_tiny",
        "cache_dir": folder + "/cache",
        "train_log_dir": folder + "/logs",
        "batch_size": BATCH,
        "point_stride": 4,
        "val_split": "",
        "save_every_epochs": 0,
    }
    if not is_gpu:
        small = {"fusion_hidden_dim": 64, "fusion_heads": 4, "image_size": 112, "point_stride": 16}
        return {**flags, **small, "vggt_checkpoint": "vggt_tiny", "device": "cpu", "workers": 1}
    weights = folder + "/vggt.pt"
    peers.run([peers.peer_python(), "-c", MAKER, weights])
    return {**flags, "vggt_checkpoint": weights, "image_size": 518, "workers": 8}


def vggt_alone():
    """Frames per second, as many at a time as in the training."""
    words = ["cuda", "vggt_1b", VIEWS, 518, 10, BATCH]
    return peers.run_json([str(peers.BIN / "vggt_worker"), *map(str, words)])["rate"]


def main():
    words = sys.argv[1:]
    if set(words) - {"gpu"}:
        sys.exit("bench: atlas knows the word gpu alone")
    is_gpu = bool(words)
    if is_gpu:
        del peers.CPU_ONE_THREAD["CUDA_VISIBLE_DEVICES"]
        peers.CPU_ONE_THREAD["OMP_NUM_THREADS"] = str(os.cpu_count())
    blocks = {"size": 8, "warm": 1, "count": 5}
    with tempfile.TemporaryDirectory() as folder:
        flags = settings(is_gpu, folder)
        peers.training_rate("atlas", flags, blocks)  # Fills the cache.
        cached, uncached = [], []
        for _ in range(ROUNDS):
            cached.append(peers.training_rate("atlas", flags, blocks)["rate"])
            uncached.append(
                peers.training_rate("atlas", {**flags, "cache_features": "false"}, blocks)["rate"]
            )
            print(f"atlas: {cached[-1]:.1f}, {uncached[-1]:.1f}", file=sys.stderr, flush=True)
    frames = {}
    if is_gpu:
        frames["uncached_frames"] = VIEWS * statistics.median(uncached)
        frames["vggt_alone"] = vggt_alone()
        frames["uncached_to_vggt_alone"] = frames["uncached_frames"] / frames["vggt_alone"]
    peers.report(
        "atlas on the GPU" if is_gpu else "atlas",
        cached=statistics.median(cached),
        uncached=statistics.median(uncached),
        cached_to_uncached=statistics.median(a / b for a, b in zip(cached, uncached)),
        **frames,
    )


main()
