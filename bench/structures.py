"""How fast the recipes scribble and protein train, against the same models in eager PyTorch.

Usage: bench/structures.py [scribble|protein|prepare ...] [gpu] [compile] [fp32|tf32|bf16|fp16]

Samples per second, by turns: ours twice, PyTorch twice; with the word compile torch.compile once.
On the CPU with one thread each, fp32: scribble with 129 x 129 pixels and batch 4, protein with 16
chains of 100 residues. With the word gpu (tools/gpu_run python3 bench/structures.py gpu): scribble
with 465 x 465 pixels, batch 16, fp16, protein with 16 chains of 300 residues, fp32; another
precision by its name. Ours is the whole training: files or generated images, augmentation, gradient norm, check for NaN, logs.
PyTorch's batches lie on the device already, and it does nothing but steps.

prepare: distance maps (500 x 375 pixels) and structures (PDB files of 300 residues) that
`lockstep prepare` makes per second with all cores.
"""
import os
import re
import statistics
import sys
import tempfile

import peers

FOLDER = peers.ROOT / "bench" / "python"
ROUNDS = 2
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
BLOCKS = {"warm": 1, "count": 4}
LOSSES = {name: 1 for name in ("l_segs", "l_pesudo", "l_ds", "l_dc", "l_lorm")}


def settings(is_gpu):
    device = "cuda" if is_gpu else "cpu"
    return {
        "scribble": {
            "block": 20 if is_gpu else 2,
            "batch": 16 if is_gpu else 4,
            "device": device,
            "precision": "fp16" if is_gpu else "fp32",
            "size": 465 if is_gpu else 129,
        },
        "protein": {
            "block": 20 if is_gpu else 4,
            "batch": 16,
            "device": device,
            "precision": "fp32",
            "residues": 300 if is_gpu else 100,
        },
    }


def run_ours(name, case, files):
    flags = {
        "device": case["device"],
        "precision": case["precision"],
        "batch_size": case["batch"],
        "workers": 12 if case["device"] == "cuda" else 1,
    }
    if name == "scribble":
        flags |= {"data_path": "builtin:scribble", "crop_size": case["size"], "label_smooth": 0.1}
        flags |= {"model_type": "res50_ASPP_lorm", "layers": 50, **LOSSES}
    else:
        flags |= {"pdb_path": files, "cache_dir": files, "lr_schedule": "constant"}
    return peers.training_rate(name, flags, {**BLOCKS, "size": case["block"]})


def run_peer(name, case, words=()):
    sizes = ["--size", case["size"]] if name == "scribble" else ["--residues", case["residues"]]
    options = [*sizes, "--batch", case["batch"], "--precision", case["precision"]]
    options += ["--device", case["device"], "--block", case["block"], "--warm", case["block"]]
    return peers.run_json(
        [peers.peer_python(), str(FOLDER / f"{name}_peer.py"), *map(str, options), *words]
    )


def measure(name, case, with_compile, files):
    ours, eager = [], []
    for _ in range(ROUNDS):
        ours.append(run_ours(name, case, files))
        eager.append(run_peer(name, case))
        print(f"{name}: ours {ours[-1]}, eager {eager[-1]['rate']:.2f}", file=sys.stderr, flush=True)
    values = {
        "ours": statistics.median(run["rate"] for run in ours),
        "eager": statistics.median(run["rate"] for run in eager),
        "ours_to_eager": statistics.median(a["rate"] / b["rate"] for a, b in zip(ours, eager)),
        "precision": case["precision"],
        "data_share": max(run["data_share"] for run in ours),
        "eager_peak_gb": eager[-1]["peak_bytes"] / 1e9,
    }
    if with_compile:
        values["compile"] = run_peer(name, case, ["--compile"])["rate"]
    return {k: v if isinstance(v, str) else round(v, 3) for k, v in values.items()}


def rate_of(command, unit):
    found = re.search(rf"\(([\d.]+) {unit}/s", peers.run([peers.LOCKSTEP, "prepare", *command]))
    return float(found[1])


def measure_prepare(folder):
    def make(kind, count):
        maker = str(FOLDER / "prepare_files.py")
        peers.run([peers.peer_python(), maker, kind, f"{folder}/{kind}", str(count)])

    make("labels", 300)
    make("structures", 300)
    paths = ["--train_path", "scribbles", "--pesudo_path", "pseudo"]
    return {
        "maps_per_s": rate_of(["scribble", "--dataset_path", f"{folder}/labels", *paths], "maps"),
        "structures_per_s": rate_of(
            ["protein", "--pdb_dir", f"{folder}/structures", "--output_dir", f"{folder}/out"],
            "structures",
        ),
        "cores": os.cpu_count(),
    }


def main():
    words = sys.argv[1:]
    is_gpu = "gpu" in words
    cases = settings(is_gpu)
    unknown = set(words) - {*cases, *PRECISIONS, "prepare", "gpu", "compile"}
    if unknown:
        sys.exit(f"bench: structures does not know {' '.join(sorted(unknown))}")
    for precision in set(words) & set(PRECISIONS):
        for case in cases.values():
            case["precision"] = precision
    if is_gpu:
        del peers.CPU_ONE_THREAD["CUDA_VISIBLE_DEVICES"]
        peers.CPU_ONE_THREAD["OMP_NUM_THREADS"] = str(os.cpu_count())
    known = [*cases, "prepare"]
    names = [name for name in known if name in words] or known
    with tempfile.TemporaryDirectory() as folder:
        files = folder + "/proteins"
        residues = str(cases["protein"]["residues"])
        if "protein" in names:
            maker = str(FOLDER / "protein_files.py")
            peers.run([peers.peer_python(), maker, files, "400", residues])
        results = {
            n: measure(n, cases[n], "compile" in words, files) for n in names if n != "prepare"
        }
        if "prepare" in names:
            results["prepare"] = measure_prepare(folder)
    peers.report("structures on the GPU" if is_gpu else "structures", **results)


main()
