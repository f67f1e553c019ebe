"""All-reduce of CPU ranks through shared memory, against c10d's Gloo in the same processes.

Float32 tensors, both by turns; medians over runs of the median ratios. "bucket" is memory of the
backend, as DDP's gradients; "copied" is any tensor. Also the step of an MLP of 8.4 million
parameters on two ranks over both, against two worlds of one rank at once, and the memory of a rank
for a model of 100 MB with AdamW and an average. Targets: buckets of 25 to 100 MB 8 times as fast,
copied 3 times, 1 to 64 KB 15 times with a p99 below Gloo's median; a step at most 1.12 times one
without an exchange; all-reduce, AdamW and average of a model of 100 MB divided among the ranks
(--shard_optimizer) 1.6 times as fast as on every rank.

    python3 bench/exchange.py [RANKS [RUNS]]
"""
import os
import statistics
import sys

import peers

RANKS = sys.argv[1] if len(sys.argv) > 1 else "2"
RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
ROUNDS = "15"
STEPS = "40"
WORKER = str(peers.BIN / "exchange_worker")


def measure():
    return peers.run_json([peers.LOCKSTEP, "run", "--nproc", RANKS, WORKER, ROUNDS])


def measure_update():
    return peers.run_json([peers.LOCKSTEP, "run", "--nproc", RANKS, WORKER, "update", ROUNDS])


def rank_mb(way):
    return peers.run_json([peers.LOCKSTEP, "run", "--nproc", RANKS, WORKER, "memory", way])["rank_mb"]


def median_row(rows):
    return {name: round(statistics.median(row[name] for row in rows), 2) for name in rows[0]}


def step_ms(exchange):
    os.environ["LOCKSTEP_EXCHANGE"] = exchange
    return peers.run_json([peers.LOCKSTEP, "run", "--nproc=2", peers.WORKER, "steps", STEPS])[
        "step_ms"
    ]


def alone_ms():
    """Two worlds of one rank at once: the same load without an exchange."""
    pair = f"{peers.WORKER} steps {STEPS} & {peers.WORKER} steps {STEPS}; wait"
    return peers.run_json(["bash", "-c", pair])["step_ms"]


results = [measure() for _ in range(RUNS)]
rows = [median_row(same_size) for same_size in zip(*(result["rows"] for result in results))]
update = median_row([measure_update() for _ in range(RUNS)])
turns = [(alone_ms(), step_ms("shared"), step_ms("gloo")) for _ in range(RUNS)]
peers.report(
    "exchange",
    ranks=int(RANKS),
    rank_bandwidth_gb=statistics.median(result["rank_bandwidth_gb"] for result in results),
    rows=rows,
    step_shared_over_alone=statistics.median(shared / alone for alone, shared, _ in turns),
    step_gloo_over_alone=statistics.median(gloo / alone for alone, _, gloo in turns),
    step_shared_ms=statistics.median(shared for _, shared, _ in turns),
    step_gloo_ms=statistics.median(gloo for _, _, gloo in turns),
    update=update,
    rank_mb=rank_mb("whole"),
    sharded_rank_mb=rank_mb("divided"),
)
