"""Structures as an independent reader sees them, and the .pt files of proteins.

Usage: protein_files.py check FOLDER   every NAME.pdb beside its NAME.pt, which Lockstep made of it
       protein_files.py write FOLDER   makes NAME.original.pt of every NAME.pdb, as the original
"""
import pathlib
import sys

import numpy as np
import torch

from protein_reference import angle_bins, backbone_angles, dihedral, neighbour_graph

# fmt: off
FRAGMENTS = {
    "ALA": [4], "VAL": [15, 4, 4], "LEU": [5, 15, 4, 4], "ILE": [5, 15, 4, 5, 4],
    "MET": [5, 5, 14, 4], "PHE": [5, 7], "TYR": [5, 7, 6], "TRP": [5, 13], "SER": [6],
    "THR": [15, 6, 4], "ASN": [5, 10], "GLN": [5, 5, 10], "LYS": [5, 5, 5, 5, 8],
    "ARG": [5, 5, 5, 11], "HIS": [5, 12], "ASP": [5, 9], "GLU": [5, 5, 9], "CYS": [14],
    "GLY": [], "PRO": [5, 5, 5],
}
# fmt: on
GAMMA = ["CG", "CG1", "OG", "OG1", "SG"]


def read_residues(text):
    """The residues of the first chain of the first model, in order: type and places by atom."""
    residues = {}
    chain = None
    for line in text.splitlines():
        if line.startswith("ENDMDL"):
            break
        if line[:6] not in ("ATOM  ", "HETATM"):
            continue
        chain = chain or line[20:22]
        if line[20:22] != chain:
            continue
        atoms = residues.setdefault((line[22:27], line[17:20]), {})
        place = [float(line[30 + 8 * i : 38 + 8 * i]) for i in range(3)]
        name, occupancy = line[12:16].strip(), float(line[54:60])
        if name not in atoms or occupancy > atoms[name][0]:
            atoms[name] = (occupancy, place)
    for (_, name), atoms in residues.items():
        if name in FRAGMENTS and all(atom in atoms for atom in ("N", "CA", "C", "O")):
            yield name, {atom: np.array(place) for atom, (_, place) in atoms.items()}


def read_protein(path):
    types, coords, ids, owners, chi1, chi1_owners = [], [], [], [], [], []
    for index, (name, atoms) in enumerate(read_residues(path.read_text())):
        types.append(name)
        coords.append([atoms[atom] for atom in ("N", "CA", "C", "O")])
        ids += FRAGMENTS[name]
        owners += [index] * len(FRAGMENTS[name])
        last = [atoms[atom] for atom in GAMMA if atom in atoms]
        if "CB" in atoms and last:
            chi1.append(dihedral(atoms["N"], atoms["CA"], atoms["CB"], last[0]))
            chi1_owners.append(index)
    return {
        "backbone_coords": torch.tensor(np.array(coords), dtype=torch.float32),
        "fragment_token_ids": torch.tensor(ids, dtype=torch.int64),
        "torsion_bins": torch.from_numpy(angle_bins(np.array(chi1))),
        "residue_types": types,
        "sequence_length": torch.tensor(len(types)),
        "pdb_path": str(path),
        "fragment_residue_idx": torch.tensor(owners, dtype=torch.int64),
        "torsion_residue_idx": torch.tensor(chi1_owners, dtype=torch.int64),
    }


def compare(expected, loaded):
    for key, value in expected.items():
        if isinstance(value, torch.Tensor):
            assert loaded[key].dtype == value.dtype, key
            assert loaded[key].shape == value.shape, (key, loaded[key].shape, value.shape)
            assert torch.equal(loaded[key], value), (key, loaded[key], value)
        else:
            assert loaded[key] == value, (key, loaded[key], value)
    # What the model makes of the places: the same graph and angles.
    theirs, ours = loaded["backbone_coords"].numpy(), expected["backbone_coords"].numpy()
    assert (neighbour_graph(theirs) == neighbour_graph(ours)).all()
    assert (backbone_angles(theirs) == backbone_angles(ours)).all()


def main():
    task, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    paths = sorted(folder.glob("*.pdb"))
    assert paths
    for path in paths:
        protein = read_protein(path)
        if task == "check":
            compare(protein, torch.load(path.with_suffix(".pt"), weights_only=True))
        else:
            del protein["fragment_residue_idx"], protein["torsion_residue_idx"]
            torch.save(protein, path.with_suffix(".original.pt"))


if __name__ == "__main__":
    main()
