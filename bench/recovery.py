"""Ranks of a training are killed at random: recovery from memory beside torchrun's restart of the same worker.

    recovery.py [KILLS] [RANKS] [SEED]

After each kill: time until a step is committed that was not before. At the end: whether weights, states and metrics are
those of an undisturbed run. Targets: every kill is survived, same bits, median 2 s and a tenth of torchrun's."""
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers

KILLS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
RANKS = int(sys.argv[2]) if len(sys.argv) > 2 else 4
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
WORKER = str(peers.BIN / "lockstep-worker")
STEPS_PER_KILL = 400
TORCHRUN_KILLS = 3
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")


def training(folder, steps, more=()):
    return ["train", "tiny", "--n_steps", str(steps), "--save_dir", str(folder), "--log_every", "1", "--val_every",
            "100", "--save_every", "50", *more]


def last_step(folder):
    """Of metrics.jsonl, which has every step."""
    try:
        with open(folder / "metrics.jsonl", "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - 4096))
            lines = file.read().split(b"\n")[:-1]
        return json.loads(lines[-1])["step"]
    except (OSError, IndexError, ValueError, KeyError):
        return 0


def ranks_below(pid):
    found, todo = [], [pid]
    while todo:
        try:
            children = Path(f"/proc/{todo[-1]}/task/{todo.pop()}/children").read_text(encoding="ascii").split()
        except OSError:
            continue
        for child in map(int, children):
            todo.append(child)
            try:
                if Path(f"/proc/{child}/exe").resolve().name == "lockstep-worker":
                    found.append(child)
            except OSError:
                pass
    return found


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return False


def kill_at_random(process, folder, count, draw, pause):
    """Seconds from each kill to a new step."""
    seconds = []
    wait_until(lambda: last_step(folder) > 20, 60)
    while process.poll() is None and len(seconds) < count:
        time.sleep(draw.uniform(0, pause))
        ranks = ranks_below(process.pid)
        if not ranks:
            continue
        before = last_step(folder)
        begin = time.monotonic()
        try:
            os.kill(draw.choice(ranks), signal.SIGKILL)
        except ProcessLookupError:
            continue
        # What was under way may still be written.
        if not wait_until(lambda: last_step(folder) > before + 1 or process.poll() is not None, 120):
            break
        seconds.append(time.monotonic() - begin)
    return seconds


def start(command, log):
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=subprocess.STDOUT)


def metrics(folder):
    rows = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [{name: value for name, value in row.items() if not name.startswith(("perf/", "time"))} for row in rows]


def recover_from_memory(folder, draw):
    steps = STEPS_PER_KILL * KILLS
    whole, killed = folder / "whole", folder / "killed"
    launcher = [peers.LOCKSTEP]
    subprocess.run(launcher + training(whole, steps, ["--nproc", str(RANKS)]), env=ENVIRONMENT, check=True,
                   capture_output=True)
    with open(folder / "killed.log", "w", encoding="utf-8") as log:
        process = start(launcher + training(killed, steps, ["--nproc", str(RANKS), "--recover", "memory"]), log)
        seconds = kill_at_random(process, killed, KILLS, draw, 1.0)
        code = process.wait()
    name = f"checkpoint_step_{steps}.pt"
    compared = subprocess.run([WORKER, "probe", "checkpoints", str(whole / name), str(killed / name)], check=False,
                              capture_output=True, text=True).stdout
    return {"kills": len(seconds), "exit_code": code, "median_s": statistics.median(seconds), "longest_s": max(seconds),
            "same_bits": '"different":[]' in compared, "same_metrics": code == 0 and metrics(whole) == metrics(killed)}


def restart_by_torchrun(folder, draw):
    run = folder / "torchrun"
    command = [peers.peer_python(), "-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node",
               str(RANKS), "--max-restarts", "100", WORKER]
    with open(folder / "torchrun.log", "w", encoding="utf-8") as log:
        process = start(command + training(run, 10**7, ["--resume", "latest"]), log)
        seconds = kill_at_random(process, run, TORCHRUN_KILLS, draw, 1.0)
        process.terminate()
        process.wait()
    return statistics.median(seconds) if seconds else None


def main():
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name:
        result = recover_from_memory(Path(name), draw)
        restart = restart_by_torchrun(Path(name), draw)
    print(json.dumps({"bench": "recovery", "ranks": RANKS, "seed": SEED, **result, "torchrun_median_s": restart,
                      "ratio": restart and restart / result["median_s"]}))


main()
