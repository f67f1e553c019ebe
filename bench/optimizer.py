"""The time of an AdamW step over 28 million parameters, against Python's fused AdamW.

Same tensors and threads; the fastest step of each run. Target: speedup >= 1.0.
"""
import peers

STEPS = 20
WORKER = str(peers.BIN / "optimizer_worker")
PEER = str(peers.ROOT / "bench" / "python" / "optimizer_worker.py")

theirs, ours, speedup = peers.alternate(
    lambda: peers.run_json([peers.peer_python(), PEER, str(STEPS)])["step_ms"],
    lambda: peers.run_json([WORKER, str(STEPS)])["step_ms"],
    rounds=11,
)
peers.report(
    "optimizer", speedup_over_python=speedup, lockstep_ms=ours, python_ms=theirs, target=1.0
)
