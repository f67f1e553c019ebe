"""Trainings of the recipe tiny under faults: how they are started, seen from outside, stopped and compared."""
import json
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

import peers

WORKER = str(peers.BIN / "lockstep-worker")
ENDLESS = 10**8  # Steps; these trainings are stopped when all faults are done.
PATIENCE = 300  # Seconds for anything that should happen soon; the machine may be busy.


def flags(folder, more=(), save_every=200):
    """A line of metrics.jsonl for each step."""
    return ["train", "tiny", "--n_steps", str(ENDLESS), "--save_dir", str(folder), "--log_every", "1", "--val_every",
            "100", "--save_every", str(save_every), *more]


class Training:
    """A training in the background. All of its processes carry a mark in their environment; ranks run `program`."""

    def __init__(self, command, folder, environment=None, program=WORKER):
        self.folder = Path(folder)
        self.program = Path(os.path.realpath(program)).name
        self.mark = f"LOCKSTEP_BENCH_MARK={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.log = self.folder.parent / f"{self.folder.name}.log"
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                command, env={**os.environ, **peers.CPU_ONE_THREAD, **(environment or {}), name: value}, stdout=log,
                stderr=subprocess.STDOUT)  # fmt: skip

    def last_step(self):
        return last_step(self.folder)

    def is_running(self):
        return self.process.poll() is None

    def wait_for_step(self, step, seconds=PATIENCE):
        """False: it does not come. The training may have ended meanwhile."""
        return wait_until(lambda: self.last_step() >= step or not self.is_running(), seconds) and self.last_step() >= step

    def ranks(self):
        return [pid for pid in self.workers() if not is_spare(pid)]

    def spares(self):
        """Processes that wait to become a rank."""
        return [pid for pid in self.workers() if is_spare(pid)]

    def workers(self):
        return [pid for pid in self.processes() if program_of(pid) == self.program and pid != self.process.pid]

    def keeper(self):
        return parent_of(self.ranks()[0])

    def processes(self):
        """Those that live, also when their launcher does not."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.mark.encode() in path.read_bytes() and state_of(path.parent.name) not in "ZX":
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    def stop(self, ranks):
        """As a user does, so that it saves; then some steps to an end by plan, as that of run_undisturbed(): a signal may
        come before or after the validation of a step. Returns the exit code of the signal."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        more = ["--nproc", str(ranks), "--resume", "latest", "--stop_after_steps", "7"]
        peers.run([peers.LOCKSTEP, *flags(self.folder, more)])
        return code


def state_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
    except (OSError, IndexError):
        return "X"


def parent_of(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()[1])
    except (OSError, IndexError):
        return None


def program_of(pid):
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name
    except OSError:
        return ""


def is_spare(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:2] == [b"spare"]
    except OSError:
        return False


def last_step(folder):
    """Of metrics.jsonl, which has every step."""
    try:
        with open(folder / "metrics.jsonl", "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - 4096))
            lines = file.read().split(b"\n")[:-1]
        return json.loads(lines[-1])["step"]
    except (OSError, IndexError, ValueError, KeyError):
        return 0


def last_checkpoint(folder):
    """Its step, and the file."""
    prefix = "checkpoint_step_"
    steps = [int(path.stem[len(prefix):]) for path in folder.glob(prefix + "*.pt")]
    return max(steps, default=0), folder / f"{prefix}{max(steps, default=0)}.pt"


def wait_until(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return bool(condition())


def metrics(folder):
    rows = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [{name: value for name, value in row.items() if not name.startswith(("perf/", "time"))} for row in rows]


def differences(one, other):
    """Names of what is not equal in two checkpoints, bit for bit."""
    result = subprocess.run([WORKER, "probe", "checkpoints", str(one), str(other)], check=True, capture_output=True,
                            text=True, env={**os.environ, **peers.CPU_ONE_THREAD}).stdout  # fmt: skip
    return json.loads(result[result.index("{"):])["different"]


def run_undisturbed(folder, ranks, steps):
    """The same training, stopped after `steps` by itself."""
    peers.run([peers.LOCKSTEP, *flags(folder, ["--nproc", str(ranks), "--stop_after_steps", str(steps)])])
