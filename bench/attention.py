"""Attention over few tokens on a GPU: Lockstep's kernels against cuDNN's in PyTorch.

Usage: tools/gpu_run python3 bench/attention.py [ROUNDS]

Microseconds of forward, and of both directions, by turns; bf16, heads of 64 channels, queries, keys
and values as parts of one projection, whose gradient both leave packed. A shape is samples x tokens x
heads: those of dit (260) and jit (256 and 288).
"""
import json
import sys

import peers

rounds = sys.argv[1] if len(sys.argv) > 1 else "5"
del peers.CPU_ONE_THREAD["CUDA_VISIBLE_DEVICES"]
output = peers.run([str(peers.BIN / "attention_worker"), rounds])
rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
shapes = {row.pop("shape"): row for row in rows}
for row in shapes.values():
    row["speedup"] = round(row["pytorch_both_us"] / row["both_us"], 2)
peers.report("attention on the GPU", **shapes)
