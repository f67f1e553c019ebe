"""Ranks and whole nodes of a training on three nodes are killed at random, and it ends with the bits of an undisturbed one.

    node_recovery.py [KILLS] [SEED]   default: 30, seed 1; every fifth kill is that of a launcher, which is started again

The nodes are launchers of one machine with two ranks each, which exchange over Gloo. After each kill: time until a step
is committed that was not before. Ends with 1 unless all kills were survived with the same weights, states and metrics."""
import os
import random
import signal
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

import peers
import trainings

KILLS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
NODES = 3
RANKS_OF_A_NODE = 2
NODE_KILL_EVERY = 5
FIRST_STEP = 20
LONGEST_PAUSE = 1.0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nodes:
    """The launchers, by number. The first one hosts the job and is not killed: who replaces it needs a machine of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.rendezvous = ["--nnodes", str(NODES), "--nproc", str(RANKS_OF_A_NODE), "--recover", "memory",
                           "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--rdzv-id", "bench", "--rdzv-no-secret",
                           "--rdzv-conf", "keep_alive_interval=1,keep_alive_max_attempt=60"]  # fmt: skip
        self.launchers = [self.start()]
        if not trainings.wait_until(lambda: "waiting for" in self.launchers[0].log.read_text(encoding="utf-8")):
            self.fail("the first launcher does not wait for the others")
        self.launchers += [self.start() for _ in range(NODES - 1)]

    def start(self):
        command = [peers.LOCKSTEP, *trainings.flags(self.folder, self.rendezvous)]
        return trainings.Training(command, self.folder, {"LOCKSTEP_EXCHANGE": "gloo"})

    def fail(self, text):
        for launcher in self.launchers:
            launcher.process.kill()
        sys.exit(f"bench: {text}:\n{self.launchers[0].log.read_text()[-4000:]}")

    def kill_rank(self, draw):
        ranks = sorted(pid for launcher in self.launchers for pid in launcher.ranks())
        if not ranks:
            return False
        try:
            os.kill(draw.choice(ranks), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def kill_node(self, draw):
        number = draw.randrange(1, NODES)
        self.launchers[number].process.kill()
        self.launchers[number].process.wait()
        self.launchers[number] = self.start()
        return True

    def kill(self, number, draw):
        return self.kill_node(draw) if number % NODE_KILL_EVERY == 0 else self.kill_rank(draw)

    def last_step(self):
        return self.launchers[0].last_step()

    def wait_for_step(self, step):
        return self.launchers[0].wait_for_step(step)


def kill_at_random(nodes, draw):
    """Seconds from each kill to a new step, by what was killed."""
    seconds = {"rank": [], "node": []}
    if not nodes.wait_for_step(FIRST_STEP):
        nodes.fail("the training does not start")
    number = 1
    while number <= KILLS:
        time.sleep(draw.uniform(0, LONGEST_PAUSE))
        before = nodes.last_step()
        begin = time.monotonic()
        if not nodes.kill(number, draw):
            continue
        # What was under way may still be written.
        if not nodes.wait_for_step(before + 2):
            nodes.fail(f"the training did not survive kill {number}")
        seconds["node" if number % NODE_KILL_EVERY == 0 else "rank"].append(time.monotonic() - begin)
        number += 1
    return seconds


def main():
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name:
        killed, whole = Path(name) / "killed", Path(name) / "whole"
        nodes = Nodes(killed)
        seconds = kill_at_random(nodes, draw)
        code = nodes.launchers[0].stop(NODES * RANKS_OF_A_NODE)
        for launcher in nodes.launchers[1:]:
            launcher.process.wait(trainings.PATIENCE)
        left = sum(len(launcher.processes()) for launcher in nodes.launchers)
        step, checkpoint = trainings.last_checkpoint(killed)
        trainings.run_undisturbed(whole, NODES * RANKS_OF_A_NODE, step)
        same_bits = trainings.differences(checkpoint, whole / checkpoint.name) == []
        same_metrics = trainings.metrics(killed) == trainings.metrics(whole)
    peers.report("node_recovery", kills=KILLS, seed=SEED, exit_code=code,
                 rank_median_s=statistics.median(seconds["rank"]), rank_longest_s=max(seconds["rank"]),
                 node_median_s=statistics.median(seconds["node"] or [0]), node_longest_s=max(seconds["node"] or [0]),
                 steps=step, same_bits=same_bits, same_metrics=same_metrics, processes_left=left,
                 load=os.getloadavg()[0])  # fmt: skip
    if left or not (same_bits and same_metrics):
        sys.exit(1)


main()
