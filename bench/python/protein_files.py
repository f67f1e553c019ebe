"""Writes proteins of one length as cache files of the recipe protein, in the original's layout.

Usage: protein_files.py FOLDER COUNT RESIDUES
"""
import sys
from pathlib import Path

import torch

# Residues with their fragments.
NAMES = "ALA VAL LEU ILE MET PHE TYR TRP SER THR ASN GLN LYS ARG HIS ASP GLU CYS GLY PRO".split()
FRAGMENTS = {
    "ALA": [4], "VAL": [15, 4, 4], "LEU": [5, 15, 4, 4], "ILE": [5, 15, 4, 5, 4],
    "MET": [5, 5, 14, 4], "PHE": [5, 7], "TYR": [5, 7, 6], "TRP": [5, 13], "SER": [6],
    "THR": [15, 6, 4], "ASN": [5, 10], "GLN": [5, 5, 10], "LYS": [5, 5, 5, 5, 8],
    "ARG": [5, 5, 5, 11], "HIS": [5, 12], "ASP": [5, 9], "GLU": [5, 5, 9], "CYS": [14],
    "GLY": [], "PRO": [5, 5, 5],
}  # fmt: skip
HAS_CHI1 = set(NAMES) - {"ALA", "GLY"}


def protein(residues, generator):
    kinds = [NAMES[i] for i in torch.randint(20, (residues,), generator=generator)]
    steps = torch.randn(residues, 3, generator=generator)
    places = (3.8 * steps / steps.norm(dim=1, keepdim=True)).cumsum(0)
    atoms = torch.randn(residues, 4, 3, generator=generator)
    num_torsions = sum(kind in HAS_CHI1 for kind in kinds)
    return {
        "backbone_coords": places[:, None] + atoms,
        "fragment_token_ids": torch.tensor([f for kind in kinds for f in FRAGMENTS[kind]]),
        "torsion_bins": torch.randint(72, (num_torsions,), generator=generator),
        "residue_types": kinds,
        "sequence_length": residues,
        "pdb_path": "",
    }


def main():
    folder, count, residues = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True)
    generator = torch.Generator().manual_seed(1)
    for i in range(count):
        torch.save(protein(residues, generator), folder / f"p{i:04}.pt")


main()
