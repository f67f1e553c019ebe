"""Writes what `lockstep prepare` takes: label maps of VOC's size, or structures.

Usage: prepare_files.py labels|structures FOLDER COUNT
"""
import sys
from pathlib import Path

import numpy as np
from PIL import Image

ATOMS = {"N": (-1.2, 0.8, 0.0), "CA": (0, 0, 0), "C": (1.2, 0.8, 0), "O": (1.3, 2.0, 0)}
ATOMS |= {"CB": (0, -0.9, 1.2), "OG": (0.3, -2.2, 1.0)}
RESIDUES = 300


def write_labels(root, count):
    random = np.random.default_rng(1)
    lists = root / "ImageSets" / "SegmentationAug"
    for folder in (root / "scribbles", root / "pseudo", lists):
        folder.mkdir(parents=True)
    rows, columns = np.mgrid[:375, :500]
    for i in range(count):
        pseudo = np.zeros((375, 500), np.uint8)
        scribbles = np.full((375, 500), 255, np.uint8)
        for label in random.integers(1, 21, 3):
            y, x, size = random.integers(60, 300), random.integers(60, 440), random.integers(20, 90)
            pseudo[(rows - y) ** 2 + (columns - x) ** 2 < size**2] = label
            scribbles[y - 2 : y + 2, x - 15 : x + 15] = label
        Image.fromarray(pseudo).save(root / "pseudo" / f"{i:04}.png")
        Image.fromarray(scribbles).save(root / "scribbles" / f"{i:04}.png")
    (lists / "train.txt").write_text("".join(f"{i:04}\n" for i in range(count)))


def write_structures(root, count):
    random = np.random.default_rng(1)
    root.mkdir(parents=True)
    for i in range(count):
        steps = random.normal(size=(RESIDUES, 3))
        # Places of a PDB file have three digits before the point.
        places = np.clip((3.8 * steps / np.linalg.norm(steps, axis=1)[:, None]).cumsum(0), -900, 900)
        lines = []
        for residue, place in enumerate(places):
            for name, offset in ATOMS.items():
                x, y, z = place + offset
                lines.append(
                    f"ATOM  {len(lines) + 1:5}  {name:<3} SER A{residue + 1:4}    "
                    f"{x:8.3f}{y:8.3f}{z:8.3f}  1.00 20.00           {name[0]}\n"
                )
        (root / f"s{i:04}.pdb").write_text("".join([*lines, "END\n"]))


def main():
    kind, folder, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    {"labels": write_labels, "structures": write_structures}[kind](folder, count)


main()
