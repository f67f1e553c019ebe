"""What `--recover memory` costs a step, against `--recover restart`: short steps (tiny) and longer ones (a small dit).

    recovery_cost.py [PAIRS] [RANKS]    default: 7 pairs of trainings by turns, 2 ranks

The time of a step is the total of the table at the end, of trainings that neither validate nor save."""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import peers

PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 7
RANKS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
TOTAL = re.compile(r"^ +total +([0-9.]+) (us|ms|s) ", re.MULTILINE)
MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
PLAIN = ["--device=cpu", "--no_use_wandb", "--no_tensorboard", "--val_every_epochs=0", "--save_every=none",
         "--log_every=100"]  # fmt: skip
DIT = ["--data_path=builtin:shapes", "--dim=64", "--depth=4", "--heads=2", "--img_size=16", "--patch=2",
       "--batch_size=16", "--sample_every=none", "--fid_every=none"]  # fmt: skip
CASES = {"tiny": ["tiny", "--n_steps=3000"], "dit": ["dit", "--n_steps=300", *DIT]}


def step_ms(flags, recover):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [peers.LOCKSTEP, "train", *flags, *PLAIN, f"--nproc={RANKS}", f"--save_dir={folder}/run", "--recover", recover],
            env={**os.environ, **peers.CPU_ONE_THREAD}, capture_output=True, text=True, check=False)  # fmt: skip
    found = TOTAL.search(run.stdout)
    if run.returncode != 0 or not found:
        sys.exit(f"bench: {run.stdout}\n{run.stderr}")
    return float(found[1]) * MILLISECONDS[found[2]]


def measure(flags):
    times = {"memory": [], "restart": []}
    for pair in range(PAIRS):
        order = ["memory", "restart"] if pair % 2 == 0 else ["restart", "memory"]
        for recover in order:
            times[recover].append(step_ms(flags, recover))
    ratios = sorted(memory / restart for memory, restart in zip(times["memory"], times["restart"]))
    return {
        "memory_ms": round(statistics.median(times["memory"]), 3),
        "restart_ms": round(statistics.median(times["restart"]), 3),
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


if __name__ == "__main__":
    results = {name: measure(flags) for name, flags in CASES.items()}
    print(json.dumps({"bench": "recovery_cost", "ranks": RANKS, "load": round(os.getloadavg()[0], 1), **results}))
