"""The time of a step on two ranks, against Python's DDP: same network, batch and threads.

Over Gloo, as Python's, and over shared memory, which is what ranks of one machine use. Target: over
Gloo ratio <= 1.02.
"""
import os
import statistics

import peers

STEPS = 40
ROUNDS = 5


def step_ms(*program):
    return peers.run_json([peers.LOCKSTEP, "run", "--nproc=2", *program, "steps", str(STEPS)])["step_ms"]


def ours(exchange):
    os.environ["LOCKSTEP_EXCHANGE"] = exchange
    return step_ms(peers.WORKER)


turns = [(ours("gloo"), step_ms(peers.peer_python(), peers.PEER), ours("shared")) for _ in range(ROUNDS)]
peers.report(
    "two_ranks",
    ratio_to_python=statistics.median(gloo / python for gloo, python, _ in turns),
    shared_to_python=statistics.median(shared / python for _, python, shared in turns),
    lockstep_ms=statistics.median(gloo for gloo, _, _ in turns),
    shared_ms=statistics.median(shared for _, _, shared in turns),
    python_ms=statistics.median(python for _, python, _ in turns),
    target=1.02,
)
