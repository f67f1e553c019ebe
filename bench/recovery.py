"""Processes of a training are killed at random, and it ends with the bits of an undisturbed one.

    recovery.py [KILLS] [RANKS] [SEED]            ranks; the others give the new process their state from memory.
                                                  Beside it: torchrun's restart of the same worker, and of a training
                                                  of Python's DDP.
    recovery.py gpu [KILLS] [RANKS] [SEED]        ranks that exchange over NCCL and share the GPUs of this machine; times alone,
                                                  as tests/gpu/recovery_test.cpp compares the bits.
    recovery.py launcher [KILLS] [RANKS] [SEED]   the keeper or the front of the launcher, by turns that SEED draws.
                                                  Nothing may be left, and --resume latest goes on.

After each kill of a rank: time until a step is committed that was not before. Ends with 1 unless all kills were survived
with the same weights, states and metrics. Targets: median 2 s and a tenth of torchrun's."""
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import peers
import trainings

WORDS = sys.argv[1:]
FORM = WORDS.pop(0) if WORDS and not WORDS[0].isdigit() else ""
KILLS_LAUNCHER = FORM == "launcher"
NUMBERS = [int(word) for word in WORDS]
KILLS = NUMBERS[0] if NUMBERS else 30
RANKS = NUMBERS[1] if len(NUMBERS) > 1 else 4
SEED = NUMBERS[2] if len(NUMBERS) > 2 else 1
TORCHRUN_KILLS = 5
PYTHON_WORKER = str(peers.ROOT / "bench" / "python" / "recovery_worker.py")
FIRST_STEP = 20


def kill_ranks(training, count, draw, pause):
    """Seconds from each kill to a new step; fewer than `count` when the training did not survive one."""
    seconds = []
    training.wait_for_step(FIRST_STEP)
    while len(seconds) < count and training.is_running():
        time.sleep(draw.uniform(0, pause))
        ranks = training.ranks()
        if not ranks:
            continue
        before = training.last_step()
        begin = time.monotonic()
        try:
            os.kill(draw.choice(sorted(ranks)), signal.SIGKILL)
        except ProcessLookupError:
            continue
        # What was under way may still be written.
        if not training.wait_for_step(before + 2):
            break
        seconds.append(time.monotonic() - begin)
    return seconds


def compare(killed, whole):
    """With an undisturbed run that stops at the same step."""
    step, checkpoint = trainings.last_checkpoint(killed)
    trainings.run_undisturbed(whole, RANKS, step)
    return {"steps": step, "same_bits": trainings.differences(checkpoint, whole / checkpoint.name) == [],
            "same_metrics": trainings.metrics(killed) == trainings.metrics(whole)}  # fmt: skip


def recover_from_memory(folder, draw):
    killed = folder / "killed"
    more = ["--nproc", str(RANKS), "--recover", "memory"]
    training = trainings.Training([peers.LOCKSTEP, *trainings.flags(killed, more)], killed)
    seconds = kill_ranks(training, KILLS, draw, 1.0)
    if not training.is_running() or not training.wait_for_step(training.last_step() + 2):
        sys.exit(f"bench: the training did not survive kill {len(seconds) + 1}:\n{training.log.read_text()[-4000:]}")
    code = training.stop(RANKS)
    result = {"survived": len(seconds), "exit_code": code, "median_s": statistics.median(seconds),
              "longest_s": max(seconds), "processes_left": len(training.processes())}  # fmt: skip
    return {**result, **compare(killed, folder / "whole")}


def recover_on_gpus(folder, draw):
    """Ends the training when all kills are done: no GPU is left waiting for it."""
    run = folder / "gpu"
    more = ["--nproc", str(RANKS), "--recover", "memory", "--share-gpus", "--device", "cuda"]
    visible = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0")}
    training = trainings.Training([peers.LOCKSTEP, *trainings.flags(run, more)], run, environment=visible)
    seconds = kill_ranks(training, KILLS, draw, 1.0)
    goes_on = training.is_running() and training.wait_for_step(training.last_step() + 2)
    training.process.send_signal(signal.SIGTERM)
    training.process.wait(trainings.PATIENCE)
    if not goes_on or len(seconds) < KILLS:
        sys.exit(f"bench: the training did not survive kill {len(seconds) + 1}:\n{training.log.read_text()[-4000:]}")
    return {"survived": len(seconds), "median_s": statistics.median(seconds), "longest_s": max(seconds),
            "processes_left": len(training.processes())}  # fmt: skip


def restart_by_torchrun(run, words, program, draw):
    """The median of the seconds until a step is done that was not before; those since the last checkpoint come twice. None
    when the training does not go on."""
    torchrun = [*peers.torchrun(), "--standalone", "--nproc-per-node", str(RANKS), "--max-restarts", "100"]
    training = trainings.Training(torchrun + words, run, program=program)
    seconds = kill_ranks(training, TORCHRUN_KILLS, draw, 1.0)
    training.process.terminate()
    training.process.wait()
    return statistics.median(seconds) if seconds else None


def restarts_by_torchrun(folder, draw):
    ours = ["--no-python", trainings.WORKER, *trainings.flags(folder / "ours", ["--resume", "latest"])]
    theirs = [PYTHON_WORKER, str(folder / "theirs")]
    return {"torchrun_same_worker_s": restart_by_torchrun(folder / "ours", ours, trainings.WORKER, draw),
            "torchrun_python_s": restart_by_torchrun(folder / "theirs", theirs, peers.peer_python(), draw)}  # fmt: skip


def kill_launcher(training, draw):
    """Returns how many processes are left a minute later; normally none."""
    name = draw.choice(["front", "keeper"])
    os.kill(training.process.pid if name == "front" else training.keeper(), signal.SIGKILL)
    training.process.wait(trainings.PATIENCE)
    trainings.wait_until(lambda: not training.processes(), 60)
    return len(training.processes())


def resume_after_kills(folder, draw):
    killed = folder / "killed"
    more = ["--nproc", str(RANKS), "--resume", "latest"]
    left = 0
    for kill in range(KILLS):
        # Beyond what the one before has written after its last checkpoint.
        step = trainings.last_step(killed) + draw.randrange(1, 60)
        training = trainings.Training([peers.LOCKSTEP, *trainings.flags(killed, more, save_every=20)], killed)
        if not training.wait_for_step(step):
            sys.exit(f"bench: the training did not go on after kill {kill}:\n{training.log.read_text()[-4000:]}")
        left += kill_launcher(training, draw)
    peers.run([peers.LOCKSTEP, *trainings.flags(killed, [*more, "--stop_after_steps", "30"], save_every=20)])
    return {"survived": KILLS, "processes_left": left, **compare(killed, folder / "whole")}


def main():
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name:
        if KILLS_LAUNCHER:
            result = resume_after_kills(Path(name), draw)
        elif FORM == "gpu":
            result = recover_on_gpus(Path(name), draw)
        else:
            result = recover_from_memory(Path(name), draw)
            result.update(restarts_by_torchrun(Path(name), draw))
            if result["torchrun_python_s"]:
                result["part_of_python"] = result["median_s"] / result["torchrun_python_s"]
    result["load"] = os.getloadavg()[0]
    print(json.dumps({"bench": f"recovery {FORM}".strip(), "kills": KILLS, "ranks": RANKS, "seed": SEED, **result}))
    is_equal = result.get("same_bits", True) and result.get("same_metrics", True)
    if result["survived"] < KILLS or result["processes_left"] or not is_equal:
        sys.exit(1)


main()
