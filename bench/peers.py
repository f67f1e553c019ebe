"""What the benchmarks share: where our programs and Python's are, and how to time them."""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("LOCKSTEP_BIN", ROOT / "build" / "release" / "bin"))
LOCKSTEP = str(BIN / "lockstep")
WORKER = str(BIN / "ddp_worker")
PEER = str(ROOT / "bench" / "python" / "ddp_worker.py")
CPU_ONE_THREAD = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def peer_python():
    """The python3 that has torch: the environment's, or as CMake found it."""
    if "LOCKSTEP_PYTHON" in os.environ:
        return os.environ["LOCKSTEP_PYTHON"]
    cache = (ROOT / "build" / "release" / "CMakeCache.txt").read_text()
    found = re.search(r"^LOCKSTEP_PYTHON:\w+=(.+)$", cache, re.M)
    if not found or not os.access(found[1], os.X_OK):
        sys.exit("bench: no python3 with torch is known; set LOCKSTEP_PYTHON and build again")
    return found[1]


def torchrun():
    return [peer_python(), "-m", "torch.distributed.run"]


def run(command):
    environment = {**os.environ, **CPU_ONE_THREAD}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if result.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} failed\n{result.stdout}{result.stderr}")
    return result.stdout


def run_json(command):
    return json.loads(run(command).strip().splitlines()[-1])


def seconds_until(command, text):
    """From the start of the command until it prints the text."""
    environment = {**os.environ, **CPU_ONE_THREAD}
    begin = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        for line in process.stdout:
            if text in line:
                seconds = time.perf_counter() - begin
                process.communicate()
                return seconds
    sys.exit(f"bench: {' '.join(command)} never printed '{text}'")


def alternate(ours, theirs, rounds):
    """Calls both by turns; gives their results and the median of the ratios."""
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    return (
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(a / b for a, b in pairs),
    )


def training_rate(recipe, flags, blocks):
    """Samples per second of our training, and the share of the time that it waits for data.

    blocks: {"size": steps between two numbers, "warm": numbers left out, "count": all numbers}.
    """
    rate = "perf/samples_per_second"
    flags = {
        "n_steps": blocks["count"] * blocks["size"],
        "log_every": blocks["size"],
        # The last step still validates and saves: as little as there can be.
        **{f"{what}_every": 1000000 for what in ("val", "save", "sample")},
        "limit_val_batches": 1,
        **flags,
    }
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    with tempfile.TemporaryDirectory() as folder:
        output = run(
            [str(BIN / "lockstep-worker"), "train", recipe, "--save_dir", folder + "/run"]
            + ["--no_use_wandb", "--no_tensorboard", *words]
        )
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    # Ends of epochs are logged, too.
    rates = [row[rate] for row in rows if rate in row and row["step"] % blocks["size"] == 0]
    assert len(rates) == blocks["count"], rows
    share = re.search(r"^\s+data\s+[\d.]+ ms\s+(\d+)%", output, re.M)
    return {
        "rate": statistics.median(rates[blocks["warm"] :]),
        "data_share": int(share[1]) / 100,
    }


def report(name, **values):
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in values.items()}
    print(json.dumps({"bench": name, **rounded}), flush=True)
