"""Hours of what the tests of the exchange do for seconds: kills, stops, calls of every kind and size.

    python3 bench/exchange_soak.py [MINUTES [TURNS]]   default: 30 minutes of calls, 200 kills and stops
"""
import os
import subprocess
import sys

import peers

MINUTES = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
TURNS = sys.argv[2] if len(sys.argv) > 2 else "200"

environment = {
    **os.environ,
    "LOCKSTEP_EXCHANGE_SECONDS": str(MINUTES * 60),
    "LOCKSTEP_EXCHANGE_TURNS": TURNS,
}
result = subprocess.run(
    [str(peers.BIN / "shared_memory_test")],
    env=environment,
    capture_output=True,
    text=True,
    check=False,
)
if result.returncode != 0:
    sys.exit(result.stdout + result.stderr)
peers.report("exchange_soak", minutes=MINUTES, turns=int(TURNS), failures=0)
