"""`lockstep run` with eight processes that do nothing, against torchrun. Target: <= 50 ms."""
import statistics
import time

import peers


def timed(command):
    begin = time.perf_counter()
    peers.run(command)
    return 1e3 * (time.perf_counter() - begin)


ours, theirs, ratio = peers.alternate(
    lambda: statistics.median(timed([peers.LOCKSTEP, "run", "--nproc=8", "true"]) for _ in range(5)),
    lambda: timed([*peers.torchrun(), "--standalone", "--nproc_per_node=8", "--no-python", "true"]),
    rounds=5,
)
peers.report(
    "launcher", lockstep_ms=ours, torchrun_ms=theirs, ratio_to_torchrun=ratio, target_ms=50
)
