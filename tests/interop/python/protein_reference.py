"""The masked fragment model of the guide protein in NumPy and PyTorch, written from its description.

Usage: protein_reference.py CASES_FILE RESULTS_FILE
       protein_reference.py --check PARAMETERS.tsv

Cases (a dict by name) are of two kinds. With weights:
  sizes      hidden, encoder_layers, decoder_layers, heads (arguments of ProteinModel; all may be
             left out: 256, 3, 3, 8; also neighbours 30)
  weights    the state dict, with the prefixes encoder. and decoder., loaded strictly
  coords     float32 [B,L,4,3]: N, CA, C, O;  residues  int64 [B]
  fragments  int64 [B,M], PAD 0;  torsions  int64 [B,M], -1: not scored
  masked_ids int64 [B,M]: fragments with MASK 1 where they are to be guessed
  iterations (10), lowest_id (0: ids below it are not chosen), keeps_guesses (0: every position
             is guessed anew; 1: what was kept once stays): of the inference; may be left out
Results, of one step in fp32 without dropout: nodes [B,L,hidden] (0 in padding), type_logits
  [B,M,16], torsion_logits [B,M,72] (compare where fragments are not PAD), terms (fragment,
  torsion: sum, normaliser, value), total, gradients, model (the state dict), tables (the buffers
  as made here, by name), num_trainable, num_encoder, num_decoder; inferred and inferred_torsions
  int64 [B,M] (0 and -1 in padding), course int64 [iterations,B,M] (the ids after each iteration,
  MASK where not kept); geometry, a dict "0", "1", ... of the proteins, as below.
A case without weights has coords, residues and, if wanted, chi_atoms [R,4,3] (N, CA, CB and the
  gamma atom). Results: chi1 float64 [R], chi1_bins int64 [R], and geometry, for every protein:
  angles float64 [n,3] (phi, psi, omega), features [n,6], edges int64 [2,E] (source, destination;
  sorted by source, then by destination: neighbours in a chain are about equally far),
  edge_features [E,35].
--check compares names, shapes, types and kinds with a list, and prints the number of parameters.
"""
import math
import sys

import numpy as np
import torch
from torch import nn

from scribble_reference import check

PAD = 0
MASK = 1
VOCABULARY = 16
NUM_BINS = 72
NUM_RADIAL = 32
REACH = 20.0


# Geometry, in NumPy and double precision.


def dihedral(a, b, c, d):
    """The signed angle between the planes abc and bcd of points [..., 3]; 0 where none is one."""
    v1, v2, v3 = b - a, c - b, d - c
    n1, n2 = np.cross(v1, v2), np.cross(v2, v3)
    # cos and sin, both times |n1||n2|: acos alone is inexact where omega is, near pi.
    cos = (n1 * n2).sum(-1)
    sin = (n1 * v3).sum(-1) * np.linalg.norm(v2, axis=-1)
    return np.arctan2(sin, cos)


def backbone_angles(coords):
    """phi, psi and omega of residues [n,4,3]. An end takes its own atoms for a neighbour's: 0."""
    n, ca, c = (coords[:, atom].astype(np.float64) for atom in range(3))
    angles = np.zeros((len(coords), 3))
    angles[1:, 0] = dihedral(c[:-1], n[1:], ca[1:], c[1:])
    angles[:-1, 1] = dihedral(n[:-1], ca[:-1], c[:-1], n[1:])
    angles[:-1, 2] = dihedral(ca[:-1], c[:-1], n[1:], ca[1:])
    return angles


def backbone_features(coords):
    angles = backbone_angles(coords)
    return np.concatenate([np.sin(angles), np.cos(angles)], 1)


def neighbour_graph(coords, neighbours=30):
    """Edges from each residue to its nearest ones by CA: sources and destinations, [2,E]."""
    ca = coords[:, 1].astype(np.float64)
    distances = np.linalg.norm(ca[:, None] - ca[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    count = min(neighbours, len(ca) - 1)
    nearest = np.sort(np.argsort(distances, axis=1, kind="stable")[:, :count])
    sources = np.repeat(np.arange(len(ca)), count)
    return np.stack([sources, nearest.reshape(-1)])


def edge_features(coords, edges):
    """Gaussians of the distance, then the unit vector from source to destination."""
    ca = coords[:, 1].astype(np.float64)
    vectors = ca[edges[1]] - ca[edges[0]]
    distances = np.linalg.norm(vectors, axis=-1, keepdims=True)
    centres = np.linspace(0, REACH, NUM_RADIAL)
    radial = np.exp(-0.5 * ((distances - centres) / (REACH / NUM_RADIAL)) ** 2)
    return np.concatenate([radial, vectors / np.maximum(distances, 1e-8)], 1)


def angle_bins(angles):
    """Bins over [-pi, pi]; pi itself is -pi."""
    bins = np.floor((angles + np.pi) / (2 * np.pi / NUM_BINS)).astype(np.int64)
    return bins % NUM_BINS


def geometry(coords, neighbours=30):
    edges = neighbour_graph(coords, neighbours)
    return {
        "angles": backbone_angles(coords),
        "features": backbone_features(coords),
        "edges": edges,
        "edge_features": edge_features(coords, edges),
    }


# Inference, in NumPy.


def infer(predict, is_fragment, iterations=10, lowest_id=0, keeps_guesses=0):
    """MaskGIT's way: positions are guessed again and again, ever more of the surest are kept.

    predict: ids [B,M] to type logits [B,M,16] and torsion logits [B,M,72]. Returns the ids, the
    torsion bins of the last guess and the ids after each iteration.
    """
    ids = np.where(is_fragment, MASK, PAD)
    course = []
    for k in range(1, iterations + 1):
        type_logits, torsion_logits = predict(ids)
        logits = type_logits.astype(np.float64)
        logits[..., :lowest_id] = -np.inf
        guesses = logits.argmax(-1)
        # The greatest probability of a softmax.
        sureness = 1 / np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)
        if keeps_guesses:
            is_kept = ids != MASK
            guesses, sureness = np.where(is_kept, ids, guesses), np.where(is_kept, 2, sureness)
        ids = np.where(is_fragment, MASK, PAD)
        for row in range(len(ids)):
            places = np.flatnonzero(is_fragment[row])
            order = places[np.argsort(-sureness[row, places], kind="stable")]
            kept = order[: len(places) * k // iterations]
            ids[row, kept] = guesses[row, kept]
        course.append(ids)
    return ids, np.where(is_fragment, torsion_logits.argmax(-1), -1), np.stack(course)


# The model, in PyTorch.


class DihedralEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(6, 64)

    def forward(self, features):
        return self.proj(features)


class RadialTable(nn.Module):
    """The buffers that a checkpoint has; the features above hold the same numbers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0, REACH, NUM_RADIAL))
        self.register_buffer("width", torch.tensor(REACH / NUM_RADIAL))


def mlp(inputs, width, dropout):
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LayerNorm(width),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(width, width),
    )


class GraphLayer(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.msg_mlp = mlp(width + NUM_RADIAL + 3, width, dropout)
        self.update_mlp = mlp(2 * width, width, dropout)

    def forward(self, x, edges, features):
        sources, destinations = edges
        messages = self.msg_mlp(torch.cat([x[sources], features], 1))
        received = torch.zeros_like(x).index_add(0, destinations, messages.to(x.dtype))
        return self.update_mlp(torch.cat([x, received], 1))


class Encoder(nn.Module):
    def __init__(self, width, num_layers, dropout):
        super().__init__()
        self.dihedral_encoder = DihedralEncoder()
        self.rbf_encoder = RadialTable()
        self.node_proj = nn.Linear(64, width)
        self.gnn_layers = nn.ModuleList(GraphLayer(width, dropout) for _ in range(num_layers))
        self.layer_norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(num_layers))

    def forward(self, features, edges, features_of_edges):
        """Nodes of all proteins in one row, without padding."""
        x = self.node_proj(self.dihedral_encoder(features))
        for layer, norm in zip(self.gnn_layers, self.layer_norms):
            x = norm(layer(x, edges, features_of_edges) + x)
        return x


def position_table(count, width):
    places = torch.arange(count, dtype=torch.float32)[:, None]
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000) / width))
    table = torch.zeros(1, count, width)
    table[0, :, 0::2] = torch.sin(places * rates)
    table[0, :, 1::2] = torch.cos(places * rates)
    return table


class PositionEncoder(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", position_table(1000, width))

    def forward(self, x):
        table = self.pe
        if x.shape[1] > table.shape[1]:
            table = position_table(x.shape[1], x.shape[2]).to(x.device)
        return self.dropout(x + table[:, : x.shape[1]])


def head(width, outputs, dropout):
    return nn.Sequential(
        nn.LayerNorm(width),
        nn.Linear(width, width),
        nn.GELU(),
        nn.Dropout(dropout),
        nn.Linear(width, outputs),
    )


class Decoder(nn.Module):
    def __init__(self, width, num_layers, heads, dropout):
        super().__init__()
        self.fragment_embedding = nn.Embedding(VOCABULARY, width)
        self.pos_encoder = PositionEncoder(width, dropout)
        layer = nn.TransformerDecoderLayer(
            width, heads, 4 * width, dropout, activation="gelu", batch_first=True
        )
        self.transformer_layers = nn.TransformerDecoder(layer, num_layers)
        self.encoder_proj = nn.Linear(width, width)
        self.type_head = head(width, VOCABULARY, dropout)
        self.torsion_head = head(width, NUM_BINS, dropout)

    def forward(self, ids, nodes, is_node_padding):
        is_padding = ids == PAD
        # A protein without fragments has nothing to attend to; what comes out is not scored.
        is_padding[:, 0] &= ~is_padding.all(1)
        x = self.transformer_layers(
            self.pos_encoder(self.fragment_embedding(ids)),
            self.encoder_proj(nodes),
            tgt_key_padding_mask=is_padding,
            memory_key_padding_mask=is_node_padding,
        )
        return self.type_head(x), self.torsion_head(x)


class ProteinModel(nn.Module):
    def __init__(
        self, hidden=256, encoder_layers=3, decoder_layers=3, heads=8, neighbours=30, dropout=0.0
    ):
        super().__init__()
        self.neighbours = neighbours
        self.encoder = Encoder(hidden, encoder_layers, dropout)
        self.decoder = Decoder(hidden, decoder_layers, heads, dropout)

    def encode(self, coords, residues):
        """Nodes [B,L,hidden], 0 in padding, and where padding is."""
        counts = residues.tolist()
        graphs = [geometry(c[:n].numpy(), self.neighbours) for c, n in zip(coords, counts)]
        begins = np.cumsum([0, *counts])
        edges = [graph["edges"] + begin for graph, begin in zip(graphs, begins)]
        x = self.encoder(
            torch.tensor(np.concatenate([g["features"] for g in graphs])).float(),
            torch.tensor(np.concatenate(edges, 1)),
            torch.tensor(np.concatenate([g["edge_features"] for g in graphs])).float(),
        )
        is_padding = torch.arange(coords.shape[1])[None] >= residues[:, None]
        nodes = x.new_zeros(*is_padding.shape, x.shape[-1])
        return nodes.masked_scatter(~is_padding[..., None], x), is_padding

    def forward(self, coords, residues, ids):
        nodes, is_padding = self.encode(coords, residues)
        return nodes, *self.decoder(ids, nodes, is_padding)


def cross_entropy(logits, targets, is_scored):
    """Sum over the scored positions, and their number."""
    targets = torch.where(is_scored, targets, 0)
    losses = -logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
    return (losses * is_scored).sum(), is_scored.sum()


def compute_terms(type_logits, torsion_logits, batch):
    is_masked = (batch["masked_ids"] == MASK) & (batch["fragments"] != PAD)
    return {
        "fragment": cross_entropy(type_logits, batch["fragments"], is_masked),
        "torsion": cross_entropy(torsion_logits, batch["torsions"], batch["torsions"] >= 0),
    }


def value_of(term):
    total, normaliser = term
    # Where nothing is scored the sum is 0 as well.
    return total / normaliser.clamp_min(1)


def count(module):
    return sum(p.numel() for p in module.parameters())


def geometry_of_batch(coords, residues, neighbours):
    every = [geometry(c[:n].numpy(), neighbours) for c, n in zip(coords, residues.tolist())]
    return {
        str(i): {name: torch.tensor(array) for name, array in graph.items()}
        for i, graph in enumerate(every)
    }


@torch.no_grad()
def run_inference(model, case):
    model.eval()
    nodes, is_padding = model.encode(case["coords"], case["residues"])

    def predict(ids):
        return [logits.numpy() for logits in model.decoder(torch.tensor(ids), nodes, is_padding)]

    is_fragment = (case["fragments"] != PAD).numpy()
    options = {n: case[n] for n in ("iterations", "lowest_id", "keeps_guesses") if n in case}
    ids, torsions, course = infer(predict, is_fragment, **options)
    return {
        "inferred": torch.tensor(ids),
        "inferred_torsions": torch.tensor(torsions),
        "course": torch.tensor(course),
    }


def run_model(case):
    model = ProteinModel(**case.get("sizes", {}))
    tables = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.load_state_dict(case["weights"], strict=True)
    nodes, *logits = model(case["coords"], case["residues"], case["masked_ids"])
    terms = compute_terms(*logits, case)
    total = sum(value_of(term) for term in terms.values())
    total.backward()
    return {
        "nodes": nodes.detach(),
        "type_logits": logits[0].detach(),
        "torsion_logits": logits[1].detach(),
        "terms": {
            name: {
                "sum": term[0].detach(),
                "normaliser": term[1],
                "value": value_of(term).detach(),
            }
            for name, term in terms.items()
        },
        "total": total.detach(),
        "gradients": {n: p.grad for n, p in model.named_parameters() if p.grad is not None},
        "model": dict(model.state_dict()),
        "tables": tables,
        "num_trainable": count(model),
        "num_encoder": count(model.encoder),
        "num_decoder": count(model.decoder),
        **run_inference(model, case),
        "geometry": geometry_of_batch(case["coords"], case["residues"], model.neighbours),
    }


def run(case):
    if "weights" in case:
        return run_model(case)
    neighbours = case.get("sizes", {}).get("neighbours", 30)
    results = {"geometry": geometry_of_batch(case["coords"], case["residues"], neighbours)}
    if "chi_atoms" in case:
        atoms = case["chi_atoms"].numpy().astype(np.float64)
        chi1 = dihedral(*atoms.transpose(1, 0, 2))
        results["chi1"] = torch.tensor(chi1)
        results["chi1_bins"] = torch.tensor(angle_bins(chi1))
    return results


def main():
    if sys.argv[1] == "--check":
        check(ProteinModel(), sys.argv[2])
        return
    cases = torch.load(sys.argv[1], weights_only=True)
    torch.save({name: run(case) for name, case in cases.items()}, sys.argv[2])


if __name__ == "__main__":
    main()
