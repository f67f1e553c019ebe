"""The time of a step on two ranks, against Python's DDP: same network, batch and threads.

Target: ratio <= 1.02.
"""
import peers

STEPS = 40

ours, theirs, ratio = peers.alternate(
    lambda: peers.run_json([peers.LOCKSTEP, "run", "--nproc=2", peers.WORKER, "steps", str(STEPS)])[
        "step_ms"
    ],
    lambda: peers.run_json(
        [peers.LOCKSTEP, "run", "--nproc=2", peers.peer_python(), peers.PEER, "steps", str(STEPS)]
    )["step_ms"],
    rounds=5,
)
peers.report(
    "two_ranks", ratio_to_python=ratio, lockstep_ms=ours, python_ms=theirs, target=1.02
)
