"""How fast a frozen VGGT sees, against the same net in eager PyTorch.

Usage: bench/vggt.py [gpu] [compile]

Frames per second, by turns; one line of JSON. With the word gpu (tools/gpu_run python3 bench/vggt.py
gpu): random weights of the size of VGGT-1B, 2 views of 518 x 518 pixels, 1 and 8 samples, mean token,
pose and points. Ours: a trunk of bf16 weights, heads in fp32. PyTorch's: fp32 weights, the trunk under
bf16 autocast as in the original, heads in fp32, cuDNN's kernels chosen by trial; with the word compile torch.compile once, too. On the
CPU a tiny net in fp32 and one thread each, 2 views of 112 x 112 pixels.
"""
import json
import os
import statistics
import sys

import peers

PEER = str(peers.ROOT / "bench" / "python" / "vggt_peer.py")
VIEWS = 2
BATCHES = (1, 8)
ROUNDS = 3


def settings(is_gpu):
    if is_gpu:
        return {"device": "cuda", "net": "vggt_1b", "size": 518, "block": 10, "trunk": "autocast"}
    return {"device": "cpu", "net": "tiny", "size": 112, "block": 10, "trunk": "fp32"}


def by_batch(output):
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {row["batch"]: row for row in rows}


def run_ours(case):
    words = [case["device"], case["net"], VIEWS, case["size"], case["block"], *BATCHES]
    return by_batch(peers.run([str(peers.BIN / "vggt_worker"), *map(str, words)]))


def run_peer(case, words=()):
    options = ["--batches", *BATCHES, "--views", VIEWS, "--size", case["size"]]
    options += ["--trunk", case["trunk"], "--device", case["device"]]
    options += ["--block", case["block"], "--warm", case["block"]]
    if case["net"] == "tiny":
        options.append("--tiny")
    return by_batch(peers.run([peers.peer_python(), PEER, *map(str, options), *words]))


def main():
    words = sys.argv[1:]
    unknown = set(words) - {"gpu", "compile"}
    if unknown:
        sys.exit(f"bench: vggt does not know {' '.join(sorted(unknown))}")
    is_gpu = "gpu" in words
    if is_gpu:
        del peers.CPU_ONE_THREAD["CUDA_VISIBLE_DEVICES"]
        peers.CPU_ONE_THREAD["OMP_NUM_THREADS"] = str(os.cpu_count())
    case = settings(is_gpu)
    rounds = []
    for _ in range(ROUNDS):
        rounds.append((run_ours(case), run_peer(case)))
        rates = {b: (rounds[-1][0][b]["rate"], rounds[-1][1][b]["rate"]) for b in BATCHES}
        print(f"vggt: {rates}", file=sys.stderr, flush=True)
    compiled = run_peer(case, ["--compile"]) if "compile" in words else {}
    results = {}
    for batch in BATCHES:
        pairs = [(ours[batch]["rate"], theirs[batch]["rate"]) for ours, theirs in rounds]
        values = {
            "ours": statistics.median(a for a, _ in pairs),
            "eager": statistics.median(b for _, b in pairs),
            "ours_to_eager": statistics.median(a / b for a, b in pairs),
            "ours_peak_gb": rounds[-1][0][batch]["peak_bytes"] / 1e9,
            "eager_peak_gb": rounds[-1][1][batch]["peak_bytes"] / 1e9,
        }
        if compiled:
            values["compile"] = compiled[batch]["rate"]
        results[f"samples_{batch}"] = {k: round(v, 3) for k, v in values.items()}
    peers.report("vggt on the GPU" if is_gpu else "vggt", **results)


main()
