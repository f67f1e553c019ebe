"""From the start of the launcher to the end of the first step on two ranks.

Against torchrun with the same training in Python. Target: ratio <= 0.25.
"""
import peers

DONE = "first step done"

ours, theirs, ratio = peers.alternate(
    lambda: peers.seconds_until(
        [peers.LOCKSTEP, "run", "--nproc=2", peers.WORKER, "first"], DONE
    ),
    lambda: peers.seconds_until(
        [*peers.torchrun(), "--standalone", "--nproc_per_node=2", peers.PEER, "first"], DONE
    ),
    rounds=7,
)
peers.report(
    "first_step", ratio_to_torchrun=ratio, lockstep_s=ours, torchrun_s=theirs, target=0.25
)
