"""How well --predict foretells steps on more hosts: a DiT on hosts made of network namespaces.

Every host's link is shaped by tc; two hosts predict the steps of three and four, which then run. All hosts share the
cores of this machine: rates are such that the exchange takes most of a step. "error" is (predicted - measured) /
measured. Latency cannot be shaped on kernels without netem.

    python3 bench/prediction.py [RUNS]
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile

import peers

sys.path.insert(0, str(peers.ROOT / "tests" / "clusters"))
import hosts as machine  # noqa: E402

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
RATES = (100, 200, 400)  # Mbit/s
SIZES = (2, 3, 4)
STEPS = "8"
MODEL = ["train", "dit", "--data_path", "builtin:shapes", "--dim", "256", "--depth", "3", "--heads", "4", "--patch", "4",
         "--batch_size", "4", "--n_steps", STEPS, "--no_use_wandb", "--sample_every", "none", "--limit_val_batches", "1",
         "--predict", ",".join(f"{size}x1" for size in SIZES)]


def train(hosts):
    """One rank per host. Returns the measured step, the predicted ones by size, and the header of the table."""
    folder = tempfile.mkdtemp()
    ranks = []
    for rank, host in enumerate(hosts):
        environment = {**os.environ, **peers.CPU_ONE_THREAD, "RANK": str(rank), "WORLD_SIZE": str(len(hosts)),
                       "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": hosts[0].address,
                       "MASTER_PORT": "29500"}
        ranks.append(host.start(str(peers.BIN / "lockstep-worker"), *MODEL, "--save_dir", folder, env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outputs = [rank.communicate() for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit(f"bench: a rank failed\n{outputs}")
    out = outputs[0][0]
    predicted = {int(row[1]): float(row[2]) for row in re.finditer(r"^ +\d+x1 +(\d+) +([\d.]+) ms.*%$", out, re.M)}
    return float(re.search(r"measured ([\d.]+) ms", out)[1]), predicted, re.search(r"predicted steps: .*", out)[0]


def shape(hosts, rate):
    for host in hosts:
        host.run("tc", "qdisc", "replace", "dev", "net0", "root", "tbf", "rate", f"{rate}mbit", "burst", "128kb",
                 "latency", "200ms")


def measure(hosts, rate):
    shape(hosts, rate)
    here, predicted, header = train(hosts[:2])
    bandwidth = float(re.search(r"bandwidth ([\d.]+) GB/s", header)[1])
    row = {"rate_mbit": rate, "bandwidth_mbit": round(bandwidth * 8e3), "step_ms_2": here}
    for size in SIZES[1:]:
        measured = train(hosts[:size])[0]
        row[f"step_ms_{size}"] = measured
        row[f"error_{size}"] = round((predicted[size] - measured) / measured, 3)
    return row


def main():
    machine.enter_private_machine()
    hosts = machine.make_hosts(max(SIZES))
    rows = []
    for rate in RATES:
        runs = [measure(hosts, rate) for _ in range(RUNS)]
        rows.append({name: round(statistics.median(run[name] for run in runs), 3) for name in runs[0]})
    peers.report("prediction", runs=RUNS, rows=rows)


if __name__ == "__main__":
    main()
