"""What the trainer's loop costs per step beyond the same steps written out by hand, in CPU time.

One process; the loop adds DDP, the vote on signals, clocks, NaN check, gradient norm and logs.
Target: <= 0.2 ms.
"""
import statistics
import tempfile

import peers

WORKER = str(peers.BIN / "loop_worker")


def cpu_ms(mode):
    with tempfile.TemporaryDirectory() as folder:
        return peers.run_json([WORKER, mode, folder + "/run"])["cpu_ms_per_step"]


pairs = [(cpu_ms("trainer"), cpu_ms("bare")) for _ in range(9)]
peers.report(
    "loop",
    overhead_ms=statistics.median(trainer - bare for trainer, bare in pairs),
    trainer_ms=statistics.median(trainer for trainer, _ in pairs),
    bare_ms=statistics.median(bare for _, bare in pairs),
    target=0.2,
)
