"""Whether `lockstep doctor` predicts the speed-up of a training.

Doctor and trainings on one and on two CPU ranks, one thread each, take turns, so that other load of the machine meets
all of them; on a machine that is not idle the numbers scatter.
  predicted   speed-up from 1 to 2 ranks in the doctor's line "speed", median
  measured    samples/s of the training on 2 ranks over those on 1, median of the same turns
  ratio       predicted / measured, median of the turns; target 0.85 to 1.15
"""
import json
import os
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

import peers

LOCKSTEP = str(peers.BIN / "lockstep")
FLAGS = ["--batch_size", "256", "--device", "cpu", "--val_every_epochs", "0"]
STEPS, TURNS = 200, 5
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1")


def predicted(folder):
    answer = subprocess.run([LOCKSTEP, "doctor", "--json", "train", "tiny", "--nproc", "2", *FLAGS], cwd=folder,
                            capture_output=True, text=True, check=False, env=ENVIRONMENT)
    for check in json.loads(answer.stdout)["checks"]:
        found = re.search(r"predicted speed-up ([\d.]+)", check["text"])
        if found:
            return float(found[1])
    raise RuntimeError(answer.stdout + answer.stderr)


def samples_per_second(folder, ranks):
    run = Path(folder) / f"run{ranks}"
    subprocess.run([LOCKSTEP, "train", "tiny", "--nproc", str(ranks), "--n_steps", str(STEPS), "--log_every", "20",
                    "--save_dir", str(run), "--overwrite", *FLAGS], cwd=folder, capture_output=True, check=True,
                   env=ENVIRONMENT)
    values = [json.loads(line).get("perf/samples_per_second") for line in (run / "metrics.jsonl").open()]
    values = [value for value in values if value]
    return max(values[1:])


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(TURNS):
            alone, pair = samples_per_second(folder, 1), samples_per_second(folder, 2)
            rows.append((predicted(folder), pair / alone))
    print(json.dumps({
        "bench": "doctor", "predicted": round(statistics.median(p for p, _ in rows), 3),
        "measured": round(statistics.median(m for _, m in rows), 3),
        "ratio": round(statistics.median(p / m for p, m in rows), 3), "turns": TURNS,
        "rows": [[round(p, 3), round(m, 3)] for p, m in rows]}))


if __name__ == "__main__":
    main()
