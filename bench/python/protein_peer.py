"""Trains the model of the guide protein in eager PyTorch and prints its speed as JSON.

Usage: protein_peer.py [--batch 16] [--residues 300] [--precision fp32|bf16|fp16]
                       [--device cuda|cpu] [--compile]

Proteins of equal length, with side chains of all residues alike often, so that the rows of
fragments have padding; graphs are made anew in each step and for the whole batch at once. AdamW,
gradients clipped at 1. Keys of the line: rate (samples per second, the median of rates), peak_bytes.
"""
import torch
import torch.nn.functional as F

import peer_timing as timing
import protein_reference as reference

# How many fragments the 20 residues have.
NUM_FRAGMENTS = (1, 3, 4, 5, 4, 2, 3, 2, 1, 3, 2, 3, 5, 4, 2, 2, 3, 1, 0, 3)
MASK_RATIO = 0.15
DROPOUT = 0.1


def dihedral(a, b, c, d):
    v1, v2, v3 = b - a, c - b, d - c
    n1, n2 = torch.linalg.cross(v1, v2), torch.linalg.cross(v2, v3)
    return torch.atan2((n1 * v3).sum(-1) * v2.norm(dim=-1), (n1 * n2).sum(-1))


def backbone_features(coords):
    n, ca, c = coords[:, :, 0], coords[:, :, 1], coords[:, :, 2]
    phi = dihedral(c[:, :-1], n[:, 1:], ca[:, 1:], c[:, 1:])
    psi = dihedral(n[:, :-1], ca[:, :-1], c[:, :-1], n[:, 1:])
    omega = dihedral(ca[:, :-1], c[:, :-1], n[:, 1:], ca[:, 1:])
    angles = torch.stack([F.pad(phi, (1, 0)), F.pad(psi, (0, 1)), F.pad(omega, (0, 1))], -1)
    return torch.cat([angles.sin(), angles.cos()], -1)


def graph(coords, neighbours, table):
    """Edges [2,B*L*k] between the residues of all proteins in one row, and their features."""
    ca = coords[:, :, 1]
    size, length = ca.shape[:2]
    vectors = ca[:, None] - ca[:, :, None]
    distances = vectors.norm(dim=-1)
    itself = torch.eye(length, dtype=torch.bool, device=ca.device)
    count = min(neighbours, length - 1)
    near, nearest = distances.masked_fill(itself, torch.inf).topk(count, largest=False)
    units = vectors.gather(2, nearest[..., None].expand(-1, -1, -1, 3)) / near[..., None]
    radial = torch.exp(-0.5 * ((near[..., None] - table.centers) / table.width) ** 2)
    begins = torch.arange(size, device=ca.device) * length
    sources = torch.arange(size * length, device=ca.device).repeat_interleave(count)
    edges = torch.stack([sources, (nearest + begins[:, None, None]).flatten()])
    return edges, torch.cat([radial, units], -1).flatten(0, 2)


def make_loss(model):
    def loss(coords, fragments, torsions):
        is_masked = (torch.rand_like(fragments, dtype=torch.float32) < MASK_RATIO) & (
            fragments != reference.PAD
        )
        ids = fragments.masked_fill(is_masked, reference.MASK)
        encoder = model.encoder
        edges, features = graph(coords, model.neighbours, encoder.rbf_encoder)
        nodes = encoder(backbone_features(coords).flatten(0, 1), edges, features)
        nodes = nodes.view(*coords.shape[:2], -1)
        type_logits, torsion_logits = model.decoder(ids, nodes, None)
        targets = fragments.masked_fill(~is_masked, -1)
        return F.cross_entropy(
            type_logits.flatten(0, 1), targets.flatten(), ignore_index=-1
        ) + F.cross_entropy(torsion_logits.flatten(0, 1), torsions.flatten(), ignore_index=-1)

    return loss


def make_coords(options):
    """Chains of CA at 3.8 Angstrom that turn at random; the other atoms beside them."""
    shape = (options.batch, options.residues)
    steps = F.normalize(torch.randn(*shape, 3) + torch.randn(options.batch, 1, 3), dim=-1)
    ca = (3.8 * steps).cumsum(1)
    others = 1.5 * F.normalize(torch.randn(*shape, 4, 3), dim=-1)
    others[:, :, 1] = 0
    return ca[:, :, None] + others


def make_batches(options):
    """All rows of fragments are as long as the longest."""
    shape = (timing.NUM_BATCHES, options.batch, options.residues)
    counts = torch.tensor(NUM_FRAGMENTS)[torch.randint(0, 20, shape)]
    lengths = counts.sum(-1, keepdim=True)
    places = torch.arange(int(lengths.max()))
    fragments = torch.randint(4, reference.VOCABULARY, (*shape[:2], len(places)))
    fragments[places >= lengths] = reference.PAD
    # The first fragment of a residue has the torsion.
    firsts = counts.cumsum(-1) - counts
    torsions = torch.full((*shape[:2], len(places) + 1), -1)
    firsts[counts == 0] = len(places)
    torsions.scatter_(-1, firsts, torch.randint(0, reference.NUM_BINS, shape))
    torsions = torsions[..., :-1]
    every = zip((make_coords(options) for _ in range(shape[0])), fragments, torsions)
    return [tuple(tensor.to(options.device) for tensor in batch) for batch in every]


def main():
    parser = timing.parser(__doc__, "fp32")
    parser.add_argument("--residues", type=int, default=300)
    options = parser.parse_args()
    timing.prepare(options)
    model = reference.ProteinModel(dropout=DROPOUT).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=1e-5)
    training = timing.Training(options, model, optimizer, make_loss(model))
    training.max_norm = 1.0
    training.report(make_batches(options))


if __name__ == "__main__":
    main()
