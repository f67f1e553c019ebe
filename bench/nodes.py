"""Launchers of many nodes on one machine: time to a formed world beside torchelastic's c10d rendezvous (agents as
threads, at the sizes it does within a minute); a restart after a killed node; strangers beside a running job.
Targets: 1,024 launchers in a second, 4,096 in five (some 16,000 descriptors), a job that 100,000 hostile connections do not disturb."""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers

WORKER = str(peers.BIN / "nodes_worker")
C10D = str(peers.ROOT / "bench" / "python" / "c10d_rendezvous.py")
LIMIT = 60
STRANGERS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000


def form_world(count):
    return peers.run_json([WORKER, "rendezvous", str(count)])


def c10d_seconds(count):
    """None: not within the limit."""
    command = [peers.peer_python(), C10D, str(count)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return None
    return peers.json.loads(done.stdout)["world_s"] if done.returncode == 0 else None


class Job:
    """Nodes on loopback, two ranks each, that say when they run and stay until the file `go` exists."""

    def __init__(self, nodes, port, folder):
        self.go = Path(folder) / "go"
        self.command = [
            peers.LOCKSTEP, "run", f"--nnodes={nodes}", "--nproc=2", "--max-restarts=1",
            f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=bench", "sh", "-c",
            f"echo up $TORCHELASTIC_RESTART_COUNT; while [ ! -e {self.go} ]; do sleep 0.05; done",
        ]  # fmt: skip
        self.folder = folder
        self.outputs = []
        self.launchers = [self.start() for _ in range(nodes)]

    def start(self):
        path = Path(self.folder) / f"out{len(self.outputs)}"
        self.outputs.append(path)
        with path.open("w") as out:
            environment = {**os.environ, **peers.CPU_ONE_THREAD}
            return subprocess.Popen(self.command, stdout=out, stderr=subprocess.STDOUT, env=environment)

    def wait_for(self, text, count):
        deadline = time.monotonic() + LIMIT
        while sum(path.read_text().count(text) for path in self.outputs) < count:
            if time.monotonic() > deadline:
                for launcher in self.launchers:
                    launcher.kill()
                sys.exit(f"bench: not {count} times '{text}' within {LIMIT} s\n" +
                         "".join(path.read_text() for path in self.outputs))
            time.sleep(0.001)

    def finish(self):
        self.go.touch()
        codes = [launcher.wait() for launcher in self.launchers]
        if any(code not in (0, -signal.SIGKILL) for code in codes):
            sys.exit("bench: a node failed\n" + "".join(path.read_text() for path in self.outputs))


def restart_seconds(port):
    """From the death of one of three launchers, started again at once, until all ranks run again."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(3, port, folder)
        job.wait_for("up 0", 6)
        begin = time.perf_counter()
        job.launchers[2].kill()
        job.launchers.append(job.start())
        job.wait_for("up 1", 6)
        seconds = time.perf_counter() - begin
        job.finish()
        return seconds


def strangers(port):
    with tempfile.TemporaryDirectory() as folder:
        job = Job(2, port, folder)
        job.wait_for("up 0", 4)
        result = peers.run_json([WORKER, "hostile", str(port), str(STRANGERS)])
        job.finish()
        lines = [line for path in job.outputs for line in path.read_text().splitlines() if "launchers' port" in line]
        return result, len(lines)


def main():
    numbers = {}
    for count in (256, 1024, 4096):
        runs = [form_world(count) for _ in range(3)]
        numbers[f"world_{count}_s"] = sorted(run["world_s"] for run in runs)[1]
        numbers[f"verdict_{count}_s"] = sorted(run["verdict_s"] for run in runs)[1]
    for count in (16, 64, 256):
        ours = form_world(count)["world_s"]
        theirs = c10d_seconds(count)
        numbers[f"c10d_{count}_s"] = theirs
        if theirs is None:
            break
        numbers[f"ratio_to_c10d_{count}"] = ours / theirs
    numbers["restart_s"] = sorted(restart_seconds(29480 + i) for i in range(5))[2]
    result, lines = strangers(29490)
    numbers["strangers"] = result["opened"]
    numbers["strangers_refused_at_connect"] = result["refused"]
    numbers["strangers_per_s"] = result["opened"] / result["seconds"]
    numbers["lines_about_them"] = lines
    peers.report("nodes", **numbers)


main()
