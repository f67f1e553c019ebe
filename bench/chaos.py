"""A training that goes on whatever happens to it: one fault after another, drawn by a seed.

    chaos.py [MINUTES] [RANKS] [SEED] [SECONDS]         default: 20 minutes, 4 ranks, seed 1, a fault every 30 s
    chaos.py hosts [MINUTES] [RANKS] [SEED] [SECONDS]   on three hosts made of network namespaces, 2 ranks on each

Faults: a rank is killed; one is stopped and continued; the disk takes no checkpoints; it takes them very late; on hosts
also the link of one is cut and mended. Which, when and whom the seed decides: the same seed is the same sequence. Ends
with 1 unless every fault is followed by new steps, nothing is left behind, and the weights are those of an undisturbed
run, bit for bit.

Goodput: steps done, of those that the pace in the quiet seconds before each fault would have given. The time for which a
fault itself holds the job is not counted."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers
import trainings

sys.path.insert(0, str(peers.ROOT / "tests" / "clusters"))
import hosts as machine  # noqa: E402

WORDS = sys.argv[1:]
HAS_HOSTS = bool(WORDS) and WORDS[0] == "hosts"
NUMBERS = [float(word) for word in WORDS[HAS_HOSTS:]]
HOSTS = 3 if HAS_HOSTS else 1
MINUTES = NUMBERS[0] if NUMBERS else 20.0
RANKS = int(NUMBERS[1]) if len(NUMBERS) > 1 else 2 if HAS_HOSTS else 4  # Per host.
SEED = int(NUMBERS[2]) if len(NUMBERS) > 2 else 1
EVERY = NUMBERS[3] if len(NUMBERS) > 3 else 30.0
SHIM = peers.BIN.parent / "lib" / "liblockstep_disk_faults.so"
FAULTS = ["kill", "stop", "full disk", "slow disk", *(["cut link"] if HAS_HOSTS else [])]
HELD = min(5.0, EVERY / 4)  # Seconds of a fault that ends.
CHECKPOINTS = "*checkpoint_step_*"


class Job:
    """A launcher, or one on each host; the first one hosts the job and writes its records."""

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.hosts = machine.make_hosts(HOSTS, str(folder.parent)) if HAS_HOSTS else [None]
        self.launchers = []
        for host in self.hosts:
            self.launchers.append(self.start(host))
            if host and len(self.launchers) == 1:
                trainings.wait_until(lambda: "waiting for" in self.log())

    def flags(self):
        if not HAS_HOSTS:
            return ["--nproc", str(RANKS), "--recover", "memory"]
        return ["--nnodes", str(HOSTS), "--nproc", str(RANKS), "--recover", "memory", "--rdzv-id", "chaos", "--rdzv-no-secret",
                "--rdzv-endpoint", f"{self.hosts[0].address}:29400",
                "--rdzv-conf", "keep_alive_interval=1,keep_alive_max_attempt=60"]  # fmt: skip

    def start(self, host):
        command = [peers.LOCKSTEP, *trainings.flags(self.folder, self.flags())]
        return trainings.Training(host.command(*command) if host else command, self.folder, self.environment)

    def log(self):
        return self.launchers[0].log.read_text(encoding="utf-8") if self.launchers else ""

    def ranks(self):
        return [pid for launcher in self.launchers for pid in launcher.ranks()]

    def last_step(self):
        return self.launchers[0].last_step()

    def wait_for_step(self, step):
        return self.launchers[0].wait_for_step(step)

    def stop(self):
        """The exit code of the signal."""
        code = self.launchers[0].stop(RANKS * HOSTS)
        for launcher in self.launchers[1:]:
            launcher.process.wait(trainings.PATIENCE)
        return code

    def processes(self):
        return [pid for launcher in self.launchers for pid in launcher.processes()]


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
        if not trainings.wait_until(lambda: len(self.training.ranks()) == RANKS * HOSTS):
            sys.exit(f"bench: not all ranks run:\n{self.training.log()[-4000:]}")
        return sorted(self.training.ranks())[self.draw.randrange(RANKS * HOSTS)]

    def cause(self, fault):
        """Returns when it is over."""
        if fault == "kill":
            os.kill(self.victim(), signal.SIGKILL)
        elif fault == "stop":
            pid = self.victim()
            os.kill(pid, signal.SIGSTOP)
            time.sleep(HELD)
            os.kill(pid, signal.SIGCONT)
        elif fault == "cut link":
            port = f"port{self.draw.randrange(HOSTS) + 1}"
            subprocess.run(["ip", "link", "set", port, "down"], check=True)
            time.sleep(HELD)
            subprocess.run(["ip", "link", "set", port, "up"], check=True)
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
        held = max(0.0, lasted - done / max(pace, 1e-9)) if fault in ("stop", "slow disk", "cut link") else 0.0
        if not training.wait_for_step(training.last_step() + 2):
            sys.exit(f"bench: no new step after fault {number}, {fault}:\n{training.log()[-4000:]}")
        time.sleep(max(0.0, EVERY / 2 - (time.monotonic() - begin)))
        seconds = time.monotonic() - begin - held
        lost.append((fault, seconds - (training.last_step() - step) / max(pace, 1e-9), held))
    return lost


def main():
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chaotic, whole, controls = folder / "chaotic", folder / "whole", folder / "faults"
        training = Job(chaotic, {"LD_PRELOAD": str(SHIM), "DISK_FAULTS": str(controls)})
        if not training.wait_for_step(20):
            sys.exit(f"bench: the training does not start:\n{training.log()[-4000:]}")
        begin = time.monotonic()
        lost = disturb(Chaos(training, controls, draw), int(MINUTES * 60 / EVERY))
        seconds = time.monotonic() - begin
        code = training.stop()
        left = len(training.processes())
        step, checkpoint = trainings.last_checkpoint(chaotic)
        trainings.run_undisturbed(whole, RANKS * HOSTS, step)
        # What a full disk did not take is not the best model.
        different = [path for path in trainings.differences(whole / checkpoint.name, checkpoint)
                     if not path.startswith("lockstep.state.best")]  # fmt: skip
        same_metrics = trainings.metrics(chaotic) == trainings.metrics(whole)
    goodput = 1 - sum(entry[1] for entry in lost) / max(1e-9, seconds - sum(entry[2] for entry in lost))
    counts = {fault: sum(entry[0] == fault for entry in lost) for fault in FAULTS}
    worst = {fault: max((entry[1] for entry in lost if entry[0] == fault), default=0.0) for fault in FAULTS}
    print(json.dumps({"bench": "chaos", "hosts": HOSTS, "ranks": RANKS * HOSTS, "seed": SEED, "seconds": seconds, "steps": step, "faults": counts,
                      "most_seconds_lost": worst, "goodput": goodput, "exit_code": code, "processes_left": left,
                      "different": different, "same_metrics": same_metrics, "load": os.getloadavg()[0]}))  # fmt: skip
    if left or different or not same_metrics:
        sys.exit(1)


if HAS_HOSTS:
    machine.enter_private_machine()
main()
