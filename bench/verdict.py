"""From a failure to the launcher's verdict, for each class of cause that needs no time-out.

Rank 1 of two notes the time and fails in the way of the class; rank 0 sleeps. The time is taken until the last line of
the verdict has been printed, which includes ending rank 0. Port: from the start of the command. Not here: data
starvation, stall and desynchronised collectives, which a time-out shows, and out of GPU memory by a real GPU.
  NAME_s      median of the turns
  training_s  the same of a training of two ranks of which one is killed
  most_s      the longest of all; target 2
"""
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers

TURNS = 5
PREAMBLE = """
import mmap, os, signal, time
def mark():
    with open(os.environ['MARK'] + '.new', 'w') as file: file.write(repr(time.time()))
    os.rename(os.environ['MARK'] + '.new', os.environ['MARK'])
if os.environ['RANK'] == '0': time.sleep(600)
"""
# Class of the verdict, and how rank 1 comes to it.
FAILURES = {
    "out of GPU memory": "mark(); raise RuntimeError('CUDA out of memory. Tried to allocate 20.00 MiB')",
    "out of host memory (OOM killer)": "mark(); raise MemoryError()",
    "exception": "mark(); raise ValueError('a bad value')",
    "signal": "mark(); os.kill(os.getpid(), signal.SIGSEGV)",
    "NaN": "mark(); raise FloatingPointError('Loss is nan, stopping')",
    "shared memory": "mark(); raise OSError(28, 'No space left on device', '/dev/shm/block')",
    "disk full": "file = open('/dev/full', 'wb', 0); mark(); file.write(b'x')",
    "interface": "mark(); raise RuntimeError('Gloo: no network interface named nope0')",
}
# Rank 0 has to see the end of rank 1, as a rank whose peer closes its connection does.
LEAVER = """
import json, os, time
mark = os.environ['MARK']
if os.environ['RANK'] == '1':
    with open(mark + '.new', 'w') as file: file.write(repr(time.time()) + ' ' + str(os.getpid()))
    os.rename(mark + '.new', mark)
    os._exit(0)
while not os.path.exists(mark): time.sleep(0.001)
while os.path.exists('/proc/' + open(mark).read().split()[1]): time.sleep(0.001)
with open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w') as file:
    json.dump({'message': {'message': 'PeerError: Connection closed by peer'}}, file)
os._exit(5)
"""


def verdict_of(command, mark, started=lambda: None):
    """The class that the launcher names, and the time when it has."""
    environment = {**os.environ, **peers.CPU_ONE_THREAD, "MARK": str(mark)}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment) as job:
        started()
        cause, lines = None, []
        for line in job.stderr:
            lines.append(line)
            if line.startswith("Verdict: "):
                cause = line.removeprefix("Verdict: ").strip()
            if cause and line.startswith("  see     : "):
                return cause, time.time()
    sys.exit("bench: no verdict in:\n" + "".join(lines))


def latency(cause, script):
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "mark"
        command = [peers.LOCKSTEP, "run", "--nproc=2", sys.executable, "-c", script]
        found, at = verdict_of(command, mark)
        if found != cause:
            sys.exit(f"bench: the verdict is '{found}' instead of '{cause}'")
        return at - float(mark.read_text().split()[0])


def training_latency():
    with tempfile.TemporaryDirectory() as folder:
        run, killed = Path(folder) / "run", []

        def kill_rank_1():
            show = [peers.LOCKSTEP, "runs", "show", str(run), "--json"]
            while True:
                answer = subprocess.run(show, capture_output=True, check=False)
                ranks = json.loads(answer.stdout)["ranks"] if answer.returncode == 0 else []
                if len(ranks) == 2 and ranks[1]["step"] > 0:
                    break
                time.sleep(0.05)
            killed.append(time.time())
            os.kill(ranks[1]["pid"], signal.SIGKILL)

        command = [peers.LOCKSTEP, "train", "tiny", "--nproc", "2", "--device", "cpu", "--n_steps", "10000000",
                   "--save_dir", str(run)]
        found, at = verdict_of(command, "", kill_rank_1)
        if found != "signal":
            sys.exit(f"bench: the verdict is '{found}' instead of 'signal'")
        return at - killed[0]


def port_latency():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        begin = time.time()
        found, at = verdict_of([peers.LOCKSTEP, "run", "--nproc=2", "--master-port", str(taken.getsockname()[1]), "true"], "")
        if found != "port":
            sys.exit(f"bench: the verdict is '{found}' instead of 'port'")
        return at - begin


def main():
    ways = {cause: lambda cause=cause, script=script: latency(cause, PREAMBLE + script)
            for cause, script in FAILURES.items()}
    ways["unequal number of batches"] = lambda: latency("unequal number of batches", LEAVER)
    ways["port"] = port_latency
    ways["training"] = training_latency
    times = {cause: [way() for _ in range(TURNS)] for cause, way in ways.items()}
    name = {cause: "".join(c if c.isalnum() else "_" for c in cause.split(" (")[0]).lower() for cause in times}
    peers.report("verdict", **{f"{name[cause]}_s": statistics.median(found) for cause, found in times.items()},
                 most_s=max(max(found) for found in times.values()), target_s=2, load=os.getloadavg()[0])


if __name__ == "__main__":
    main()
