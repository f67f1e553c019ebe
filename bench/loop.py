"""What the trainer's loop costs per step beyond the same steps written out by hand, in CPU time.

One process; the loop adds DDP, the vote on signals, clocks, NaN check, gradient norm and logs.
Target: <= 0.2 ms.
"""
import tempfile

import peers

WORKER = str(peers.BIN / "loop_worker")


def cpu_ms(mode):
    with tempfile.TemporaryDirectory() as folder:
        return peers.run_json([WORKER, mode, folder + "/run"])["cpu_ms_per_step"]


bare, trainer, _ = peers.alternate(lambda: cpu_ms("bare"), lambda: cpu_ms("trainer"), rounds=7)
peers.report(
    "loop", overhead_ms=round(trainer - bare, 4), trainer_ms=trainer, bare_ms=bare, target=0.2
)
