"""A training that goes on whatever happens to it: one fault after another, drawn by a seed.

    chaos.py [MINUTES] [RANKS] [SEED] [SECONDS]   default: 20 minutes, 4 ranks, seed 1, a fault every 30 s

Faults: a rank is killed; one is stopped and continued; the disk takes no checkpoints; it takes them very late. Which,
when and whom the seed decides: the same seed is the same sequence. (A link that is cut needs several nodes:
tests/clusters.) Ends with 1 unless every fault is followed by new steps, nothing is left behind, and the weights are
those of an undisturbed run, bit for bit.

Goodput: steps done, of those that the pace in the quiet seconds before each fault would have given. The time for which a
fault itself holds the job is not counted."""
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import peers
import trainings

NUMBERS = [float(word) for word in sys.argv[1:]]
MINUTES = NUMBERS[0] if NUMBERS else 20.0
RANKS = int(NUMBERS[1]) if len(NUMBERS) > 1 else 4
SEED = int(NUMBERS[2]) if len(NUMBERS) > 2 else 1
EVERY = NUMBERS[3] if len(NUMBERS) > 3 else 30.0
SHIM = peers.BIN.parent / "lib" / "liblockstep_disk_faults.so"
FAULTS = ["kill", "stop", "full disk", "slow disk"]
HELD = min(5.0, EVERY / 4)  # Seconds of a fault that ends.
CHECKPOINTS = "*checkpoint_step_*"


class Chaos:
    def __init__(self, training, controls, draw):
        self.training = training
        self.controls = controls
        self.draw = draw

    def set_disk(self, lines):
        """As tests/support/disk_fault_shim.cpp reads them."""
        new = self.controls.with_suffix(".new")
        new.write_text(lines, encoding="ascii")
        new.rename(self.controls)

    def victim(self):
        if not trainings.wait_until(lambda: len(self.training.ranks()) == RANKS):
            sys.exit(f"bench: not all ranks run:\n{self.training.log.read_text()[-4000:]}")
        return sorted(self.training.ranks())[self.draw.randrange(RANKS)]

    def cause(self, fault):
        """Returns when it is over."""
        if fault == "kill":
            os.kill(self.victim(), signal.SIGKILL)
        elif fault == "stop":
            pid = self.victim()
            os.kill(pid, signal.SIGSTOP)
            time.sleep(HELD)
            os.kill(pid, signal.SIGCONT)
        else:
            self.set_disk(f"write ENOSPC 0 {CHECKPOINTS}\n" if fault == "full disk" else f"fsync HOLD 0 {CHECKPOINTS}\n")
            time.sleep(HELD)
            self.set_disk("")


def disturb(chaos, num_faults):
    """The faults in their order: their names, the seconds that each has cost, and those for which it held the job."""
    training, lost = chaos.training, []
    for number in range(num_faults):
        quiet = time.monotonic()
        before = training.last_step()
        time.sleep(EVERY / 2)
        pace = (training.last_step() - before) / (time.monotonic() - quiet)
        fault = chaos.draw.choice(FAULTS)
        begin, step = time.monotonic(), training.last_step()
        chaos.cause(fault)
        # Training waits for a slow disk only when the next checkpoint is due.
        lasted, done = time.monotonic() - begin, training.last_step() - step
        held = max(0.0, lasted - done / max(pace, 1e-9)) if fault in ("stop", "slow disk") else 0.0
        if not training.wait_for_step(training.last_step() + 2):
            sys.exit(f"bench: no new step after fault {number}, {fault}:\n{training.log.read_text()[-4000:]}")
        time.sleep(max(0.0, EVERY / 2 - (time.monotonic() - begin)))
        seconds = time.monotonic() - begin - held
        lost.append((fault, seconds - (training.last_step() - step) / max(pace, 1e-9), held))
    return lost


def main():
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chaotic, whole, controls = folder / "chaotic", folder / "whole", folder / "faults"
        flags = trainings.flags(chaotic, ["--nproc", str(RANKS), "--recover", "memory"])
        training = trainings.Training([peers.LOCKSTEP, *flags], chaotic, {"LD_PRELOAD": str(SHIM), "DISK_FAULTS": str(controls)})
        if not training.wait_for_step(20):
            sys.exit(f"bench: the training does not start:\n{training.log.read_text()[-4000:]}")
        begin = time.monotonic()
        lost = disturb(Chaos(training, controls, draw), int(MINUTES * 60 / EVERY))
        seconds = time.monotonic() - begin
        code = training.stop(RANKS)
        left = len(training.processes())
        step, checkpoint = trainings.last_checkpoint(chaotic)
        trainings.run_undisturbed(whole, RANKS, step)
        # What a full disk did not take is not the best model.
        different = [path for path in trainings.differences(whole / checkpoint.name, checkpoint)
                     if not path.startswith("lockstep.state.best")]  # fmt: skip
        same_metrics = trainings.metrics(chaotic) == trainings.metrics(whole)
    goodput = 1 - sum(entry[1] for entry in lost) / max(1e-9, seconds - sum(entry[2] for entry in lost))
    counts = {fault: sum(entry[0] == fault for entry in lost) for fault in FAULTS}
    worst = {fault: max((entry[1] for entry in lost if entry[0] == fault), default=0.0) for fault in FAULTS}
    print(json.dumps({"bench": "chaos", "ranks": RANKS, "seed": SEED, "seconds": seconds, "steps": step, "faults": counts,
                      "most_seconds_lost": worst, "goodput": goodput, "exit_code": code, "processes_left": left,
                      "different": different, "same_metrics": same_metrics, "load": os.getloadavg()[0]}))  # fmt: skip
    if left or different or not same_metrics:
        sys.exit(1)


main()
