"""What DistributedDataParallel costs in a world of one, against a bare loop.

Both keep their gradient storage. Target: ratio <= 1.01.
"""
import peers

ROUNDS = 40

ours, theirs, _ = peers.alternate(
    lambda: peers.run_json([peers.WORKER, "wrapper", str(ROUNDS)])["ratio"],
    lambda: peers.run_json(
        [peers.LOCKSTEP, "run", peers.peer_python(), peers.PEER, "wrapper", str(ROUNDS)]
    )["ratio"],
    rounds=3,
)
peers.report(
    "wrapper_alone", ratio_to_bare_loop=ours, python_ratio_to_bare_loop=theirs, target=1.01
)
