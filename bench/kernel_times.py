"""GPU time of one training step by kind of kernel, and the kernels that take most of it.

Usage: tools/gpu_run python3 bench/kernel_times.py [dit128|jit128|...]

Runs the recipe under Nsight Compute (ncu), which times every launch alone: kernels that overlap in
training are counted in full. Steps are launched kernel by kernel (--no_cuda_graph); the one that is
counted lies between two launches of set_scalars, which every step makes once.
"""
import csv
import io
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter

import images_cases
import peers

# The first pattern that a kernel's name matches.
KINDS = [
    ("attention", r"::attention|cudnn.*(sdpa|attention|flash|fmha)|flash_|fmha|dot_do_o|sdpa"),
    ("products", r"gemm|nvjet|cutlass|xmma|cublas|splitK|s16816"),
    ("norm, gate, residual", r"adaln|rms_norm|layer_norm|LayerNorm|token_norm"),
    ("qk-norm, rope, packing of qkv", r"qk_|qkv_"),
    ("activation", r"swiglu|gelu|activation|silu|GeluCUDA"),
    ("optimizer", r"optimizer_step|sum_squares|finish_norm|count_steps|set_scalars|multi_tensor"),
    ("convolutions", r"conv|wgrad|dgrad|implicit"),
    ("copies and casts", r"copy|Cat|memcpy|Memcpy|memset|Memset|convert"),
    ("reductions", r"reduce|column_sums"),
    ("element-wise", r"elementwise|vectorized|index|fill|draws"),
]
MARK = "set_scalars"
NUM_LISTED = 25


def kind_of(name):
    return next((kind for kind, pattern in KINDS if re.search(pattern, name)), "other")


def launches(recipe, flags, skip, count):
    """(name, microseconds) of each launch, in order."""
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    with tempfile.TemporaryDirectory() as folder:
        command = ["ncu", "--csv", "--clock-control", "none", "--metrics", "gpu__time_duration.sum"]
        command += ["--launch-skip", str(skip), "--launch-count", str(count)]
        command += [str(peers.BIN / "lockstep-worker"), "train", recipe, "--save_dir", folder + "/run"]
        command += ["--no_use_wandb", "--no_tensorboard", "--no_cuda_graph", "--n_steps", "40", *words]
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = [line for line in output.splitlines() if line.startswith('"')]
    rows = csv.DictReader(io.StringIO("\n".join(lines)))
    scales = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}
    return [
        (row["Kernel Name"], float(row["Metric Value"].replace(",", "")) * scales[row["Metric Unit"]])
        for row in rows
        if row["Metric Name"] == "gpu__time_duration.sum"
    ]


def one_step(kernels):
    marks = [i for i, (name, _) in enumerate(kernels) if MARK in name]
    if len(marks) < 2:
        sys.exit(f"bench: {len(kernels)} launches hold no whole step")
    return kernels[marks[0] : marks[1]]


def main():
    names = sys.argv[1:] or ["dit128", "jit128"]
    result = {}
    for name in names:
        case = images_cases.complete(images_cases.CASES[name], is_smoke=False)
        step = one_step(launches(case["recipe"], images_cases.training_flags(case), 9000, 2600))
        kinds, kernels = Counter(), Counter()
        for kernel, time in step:
            kinds[kind_of(kernel)] += time
            kernels[kernel[:110]] += time
        result[name] = {
            "total_ms": round(sum(kinds.values()) * 1e-3, 3),
            "launches": len(step),
            "ms": {kind: round(time * 1e-3, 3) for kind, time in kinds.most_common()},
        }
        calls = Counter(kernel[:110] for kernel, _ in step)
        for kernel, time in kernels.most_common(NUM_LISTED):
            print(f"{name} {time * 1e-3:8.3f} ms {calls[kernel]:4d}  {kernel}", file=sys.stderr)
    peers.report("kernel_times", **result)


main()
