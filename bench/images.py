"""How fast the recipes dit and jit train on images, against the same models in PyTorch.

Usage: tools/gpu_run python3 bench/images.py [dit128|dit512|jit128 ...] [graphs] [eager] [smoke]

Samples per second on one GPU, by turns: ours twice, PyTorch eager twice, torch.compile once; with
the word graphs also torch.compile with CUDA graphs (reduce-overhead), with eager no torch.compile.
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

PEER = [peers.peer_python(), str(peers.ROOT / "bench" / "python" / "images_worker.py")]
ROUNDS = 2
# Blocks of Lockstep: the first ones warm up, PyTorch's times as many as are left.
NUM_WARM_BLOCKS = 2
NUM_BLOCKS = 5
COMMON = {"channels": 3, "classes": 10}
DIT = {**COMMON, "size": 32, "patch": 2, "dim": 384, "depth": 12, "heads": 6, "registers": 4}
JIT = {**COMMON, "size": 64, "patch": 4, "dim": 768, "depth": 12, "heads": 12}
# The count of jit is for 1000 classes and the one that stands for none.
NUM_DIT = 32477221
NUM_JIT = 130477872 - (1001 - 11) * 768
# A block is so long that a case takes about two minutes, and all blocks are one epoch at most.
CASES = {
    "dit128": {"recipe": "dit", "batch": 128, "block": 40, "sizes": DIT, "trainable": NUM_DIT},
    "dit512": {"recipe": "dit", "batch": 512, "block": 18, "sizes": DIT, "trainable": NUM_DIT},
    "jit128": {"recipe": "jit", "batch": 128, "block": 30, "sizes": JIT, "trainable": NUM_JIT},
}
TINY = {"dim": 32, "depth": 3, "heads": 2, "size": 16, "patch": 4}
BEGIN = time.perf_counter()


def say(text):
    print(f"{time.perf_counter() - BEGIN:5.0f} s  {text}", file=sys.stderr, flush=True)


def complete(case, is_smoke):
    case = {**case, "device": "cuda"}
    if is_smoke:
        sizes = {**case["sizes"], **TINY}
        case.update(sizes=sizes, batch=8, block=2, trainable=None, device="cpu")
    if case["recipe"] == "jit":
        context = {"bottleneck": 128, "context": 32, "start": case["sizes"]["depth"] // 3}
        case["sizes"] = {**case["sizes"], **context}
    return case


def model_flags(case):
    sizes = case["sizes"]
    shared = {"img_size": sizes["size"], **{name: sizes[name] for name in ("dim", "depth", "heads")}}
    if case["recipe"] == "jit":
        return {**shared, "model": f"JiT-B/{sizes['patch']}"}
    registers = sizes["registers"]
    return {**shared, "patch": sizes["patch"], "num_register_tokens": registers, "cfg_scales": 1}


def run_ours(case):
    flags = {
        **model_flags(case),
        "data_path": "builtin:shapes",
        "device": case["device"],
        "precision": "bf16",
        "batch_size": case["batch"],
        "workers": 1 if case["device"] == "cpu" else 12,
        "fid_every": 1000000,
        "sample_steps": 1,
        "copies": 1,
        "classes": 0,
    }
    blocks = {"size": case["block"], "warm": NUM_WARM_BLOCKS, "count": NUM_BLOCKS}
    return peers.training_rate(case["recipe"], flags, blocks)


def run_peer(case, mode):
    return peers.run_json([*PEER, json.dumps({**case, "mode": mode})])


def run_compiled(case, mode):
    """None where torch.compile does not work: it needs a C compiler."""
    try:
        return run_peer(case, mode)["rate"]
    except SystemExit as error:
        say(error)
        return None


def measure(name, case, modes):
    ours, eager = [], []
    for _ in range(ROUNDS):
        ours.append(run_ours(case))
        say(f"{name} ours: {ours[-1]}")
        eager.append(run_peer(case, "eager"))
        say(f"{name} eager: {eager[-1]}")
    rate = statistics.median(run["rate"] for run in ours)
    values = {
        "ours": rate,
        "eager": statistics.median(run["rate"] for run in eager),
        "ours_to_eager": statistics.median(a["rate"] / b["rate"] for a, b in zip(ours, eager)),
        "data_share": max(run["data_share"] for run in ours),
    }
    for word, mode in modes.items():
        compiled = run_compiled(case, mode)
        say(f"{name} {word}: {compiled}")
        values[word] = compiled
        values[f"ours_to_{word}"] = rate / compiled if compiled else None
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in values.items()}


def main():
    words = sys.argv[1:]
    unknown = set(words) - {*CASES, "graphs", "eager", "smoke"}
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
    modes = {} if "eager" in words else {"compile": "default"}
    if "graphs" in words:
        modes["graphs"] = "reduce-overhead"
    names = [name for name in CASES if name in words] or list(CASES)
    results = {name: measure(name, complete(CASES[name], is_smoke), modes) for name in names}
    peers.report("images smoke" if is_smoke else "images", **results, **facts)


main()
