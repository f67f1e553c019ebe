"""How fast the recipes dit and jit train on images, against the same models in PyTorch.

Usage: tools/gpu_run python3 bench/images.py [dit128|dit512|dit16|jit16|jit128 ...] [eager] [compile] [graphs] [autotune] [smoke]

Samples per second on one GPU, by turns: ours twice, the first peer twice, the others once. Peers are
PyTorch eager, torch.compile, that with CUDA graphs (reduce-overhead) and with max-autotune; unless
some are named, eager and torch.compile.
All in bf16 with fused AdamW and moving averages. Ours is the whole training: generated images from loader threads, gradient
norm, check for NaN, logs. PyTorch's images lie on the GPU already, and it does nothing but steps.
The share of the time that ours waits for data is data_share. smoke proves on the CPU, with tiny
models, that everything runs; its numbers mean nothing.
"""
import json
import os
import statistics
import sys
import time

import peers
from images_cases import CASES, complete, training_flags

PEER = [peers.peer_python(), str(peers.ROOT / "bench" / "python" / "images_worker.py")]
ROUNDS = 2
# Blocks of Lockstep: the first ones warm up, PyTorch's times as many as are left.
NUM_WARM_BLOCKS = 2
NUM_BLOCKS = 5
# Modes of images_worker.py.
PEERS = {
    "eager": "eager",
    "compile": "default",
    "graphs": "reduce-overhead",
    "autotune": "max-autotune",
}
BEGIN = time.perf_counter()


def say(text):
    print(f"{time.perf_counter() - BEGIN:5.0f} s  {text}", file=sys.stderr, flush=True)


def run_ours(case):
    blocks = {"size": case["block"], "warm": NUM_WARM_BLOCKS, "count": NUM_BLOCKS}
    return peers.training_rate(case["recipe"], training_flags(case), blocks)


def run_peer(case, mode):
    return peers.run_json([*PEER, json.dumps({**case, "mode": mode})])


def rate_of_peer(case, peer):
    """None where torch.compile does not work: it needs a C compiler."""
    try:
        return run_peer(case, PEERS[peer])["rate"]
    except SystemExit as error:
        say(error)
        return None


def ratio(rate, other):
    return rate / other if other else None


def measure(name, case, first, *others):
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(run_ours(case))
        say(f"{name} ours: {ours[-1]}")
        theirs.append(rate_of_peer(case, first))
        say(f"{name} {first}: {theirs[-1]}")
    rates = [run["rate"] for run in ours]
    values = {
        "ours": statistics.median(rates),
        "data_share": max(run["data_share"] for run in ours),
    }
    if None not in theirs:
        values[first] = statistics.median(theirs)
        values[f"ours_to_{first}"] = statistics.median(map(ratio, rates, theirs))
    for other in others:
        values[other] = rate_of_peer(case, other)
        values[f"ours_to_{other}"] = ratio(values["ours"], values[other])
        say(f"{name} {other}: {values[other]}")
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in values.items()}


def main():
    words = sys.argv[1:]
    unknown = set(words) - {*CASES, *PEERS, "smoke"}
    if unknown:
        sys.exit(f"bench: images does not know {' '.join(sorted(unknown))}")
    is_smoke = "smoke" in words
    if not is_smoke:
        del peers.CPU_ONE_THREAD["CUDA_VISIBLE_DEVICES"]
        peers.CPU_ONE_THREAD["OMP_NUM_THREADS"] = str(os.cpu_count())
    facts = peers.run_json([*PEER, "device"])
    if not facts.pop("has_gpu") and not is_smoke:
        print("bench: images needs a GPU", file=sys.stderr)
        sys.exit(2)
    chosen = [peer for peer in PEERS if peer in words] or ["eager", "compile"]
    names = [name for name in CASES if name in words] or list(CASES)
    results = {name: measure(name, complete(CASES[name], is_smoke), *chosen) for name in names}
    peers.report("images smoke" if is_smoke else "images", **results, **facts)


main()
