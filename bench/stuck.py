"""Stuck ranks: from a fault until the launcher has named the rank, and until it has shown the stack; what its looks at
the status pages cost; false alarms of a training with four ranks per core.

    python3 bench/stuck.py [MINUTES]   default: 60 minutes of that training

Target: the rank is named within the limit (1 s here) and two looks of 0.2 s on a machine with a free core; no false
alarm in an hour."""
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers

MINUTES = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
WORKER = str(peers.BIN / "stuck_worker")
ALARM = re.compile(r"lockstep: (rank \d+ .*is stuck.*|all \d+ ranks wait.*|rank \d+ slows.*)")
# Fault of tests/faults/stuck_worker.cpp, and what its stack holds.
FAULTS = {"stop": "main", "spin": "spin_in_user_code", "sleep": "sleep_in_user_code", "deadlock": "lock_in_user_code"}
PATIENCE = 60


def start(command, error_file):
    environment = {**os.environ, **peers.CPU_ONE_THREAD}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=error_file, env=environment)


def seconds_until(path, text, begin):
    while time.time() - begin < PATIENCE:
        if text in path.read_text():
            return time.time() - begin
        time.sleep(0.005)
    sys.exit(f"bench: '{text}' did not appear:\n{path.read_text()}")


def detect(fault, function):
    """Seconds from the fault to the line that names rank 1, and to its stack."""
    with tempfile.TemporaryDirectory() as folder:
        errors = Path(folder) / "stderr"
        noted = Path(folder) / "fault"
        with errors.open("w") as error_file:
            job = start([peers.LOCKSTEP, "run", "--nproc=3", WORKER, fault, "1", folder], error_file)
        while not noted.exists():
            time.sleep(0.001)
        begin = noted.stat().st_mtime
        named = seconds_until(errors, "is stuck", begin)
        stack = seconds_until(errors, function, begin)
        text = errors.read_text()
        if not re.search(r"rank 1 \(pid \d+\) is stuck", text):
            sys.exit(f"bench: the wrong rank was named:\n{text}")
        job.terminate()
        job.wait()
        return named, stack


def cpu_seconds(pid):
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) * 1e-9


def descendants(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                child = int(path.parent.name)
                found += [child, *descendants(child)]
        except (OSError, IndexError):
            continue
    return found


def keeper_share(num_ranks, seconds):
    """Part of a core that the launcher's processes use beside running ranks."""
    with tempfile.TemporaryDirectory() as folder:
        with (Path(folder) / "stderr").open("w") as error_file:
            job = start([peers.LOCKSTEP, "run", f"--nproc={num_ranks}", WORKER, "none", "0", folder, "1000000"], error_file)
        time.sleep(2)
        ours = [pid for pid in [job.pid, *descendants(job.pid)]
                if not os.readlink(f"/proc/{pid}/exe").endswith("stuck_worker")]  # fmt: skip
        before = sum(cpu_seconds(pid) for pid in ours)
        time.sleep(seconds)
        used = sum(cpu_seconds(pid) for pid in ours) - before
        job.terminate()
        job.wait()
        return used / seconds


def soak(minutes):
    """A training with four ranks per core; the alarms of its launcher."""
    num_ranks = 4 * len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        errors = Path(folder) / "stderr"
        command = [peers.LOCKSTEP, "train", "tiny", f"--nproc={num_ranks}", "--n_steps=100000000", "--device=cpu",
                   "--log_every=10", f"--save_dir={folder}/run"]  # fmt: skip
        with errors.open("w") as error_file:
            job = start(command, error_file)
            try:
                job.wait(timeout=60 * minutes)
                sys.exit(f"bench: the training ended early:\n{errors.read_text()}")
            except subprocess.TimeoutExpired:
                job.terminate()
                job.wait()
        return num_ranks, ALARM.findall(errors.read_text())


if __name__ == "__main__":
    latencies = {fault: detect(fault, function) for fault, function in FAULTS.items()}
    share = keeper_share(8, 10)
    ranks, alarms = soak(MINUTES) if MINUTES > 0 else (0, [])
    for alarm in alarms:
        print(alarm, file=sys.stderr)
    peers.report(
        "stuck",
        **{f"{fault}_named_s": named for fault, (named, _) in latencies.items()},
        **{f"{fault}_stack_s": stack for fault, (_, stack) in latencies.items()},
        launcher_core_share_8_ranks=share,
        soak_minutes=MINUTES,
        soak_ranks=ranks,
        false_alarms=len(alarms),
        load=os.getloadavg()[0],
    )
