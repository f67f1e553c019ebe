"""How much host memory loading a large checkpoint takes, and how fast LLaMA-3-8B encodes sentences.

Usage: bench/weights.py [MEBIBYTES] [gpu]

Weights of 2048 MiB (or so many as given) are written in the temporary folder as sharded safetensors
and as one file of torch.save, then loaded into a model that has no memory yet. The share is the most
memory that the program used, above what it held before, by the size of the files; on the CPU the
loaded weights themselves are 1. Target: <= 1.15.

With the word gpu (tools/gpu_run python3 bench/weights.py gpu) they are loaded to the GPU too, and
weights of the size of LLaMA-3-8B (15 GB, bf16, random) are loaded from shards and encode 8 sentences
of 32 tokens, against transformers, by turns.
"""
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import peers

OURS = str(peers.BIN / "weights_worker")
PEER = [peers.peer_python(), str(peers.ROOT / "bench" / "python" / "llama_peer.py")]
IS_GPU = "gpu" in sys.argv[1:]
MEBIBYTES = next((word for word in sys.argv[1:] if word.isdigit()), "2048")
ROUNDS = 2
SENTENCES = ["8", "32"]  # and tokens of each

peers.CPU_ONE_THREAD["OMP_NUM_THREADS"] = str(os.cpu_count())
if IS_GPU:
    del peers.CPU_ONE_THREAD["CUDA_VISIBLE_DEVICES"]


def measure_load(form, folder):
    peers.run([OURS, "write", form, folder, MEBIBYTES])
    for device in ("cpu", "cuda") if IS_GPU else ("cpu",):
        seen = peers.run_json([OURS, "load", folder, MEBIBYTES, device])
        peers.report(
            f"weights {form} {device}",
            peak_share=seen["peak_share"],
            load_gb_per_s=seen["bytes"] / 1e9 / seen["load_s"],
            gb=seen["bytes"] / 1e9,
        )
    shutil.rmtree(folder)


def measure_encode(folder):
    peers.run([OURS, "write", "safetensors", folder, "llama3_8b"])
    loaded = peers.run_json([OURS, "load", folder, "llama3_8b", "cuda"])
    words = ["encode", "llama3_8b", "cuda", *SENTENCES]
    sizes = ["--batch", SENTENCES[0], "--tokens", SENTENCES[1]]
    ours, theirs = [], []
    for turn in range(ROUNDS):
        # The first one with the weights of the file.
        ours.append(peers.run_json([OURS, *words, *([folder] if turn == 0 else [])]))
        theirs.append(peers.run_json([*PEER, *sizes]))
    rate = statistics.median(run["rate"] for run in ours)
    peer_rate = statistics.median(run["rate"] for run in theirs)
    peers.report(
        "weights llama3_8b",
        ratio=rate / peer_rate,
        ms=statistics.median(run["ms"] for run in ours),
        peer_ms=statistics.median(run["ms"] for run in theirs),
        tokens_per_s=rate * int(SENTENCES[1]),
        peer=theirs[0]["by"],
        peak_share=loaded["peak_share"],
        load_s=loaded["load_s"],
        load_gb_per_s=loaded["bytes"] / 1e9 / loaded["load_s"],
        gpu_gb=ours[0]["peak_bytes"] / 1e9,
    )


with tempfile.TemporaryDirectory() as root:
    for kind in ("safetensors", "torch"):
        measure_load(kind, str(Path(root) / kind))
    if IS_GPU:
        measure_encode(str(Path(root) / "llama3_8b"))
