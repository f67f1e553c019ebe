// What the encoder sees of a backbone: angles of its residues and a graph of
// which residues are near.
//
// All of a batch at once and on its device; nothing is read back. Residues
// beyond a protein's own number take no part, so a protein's result does not
// depend on what it is batched with.
#pragma once

#include <cstdint>

#include "lockstep/tensor/tensor.h"

namespace lockstep::protein {

// Sine of phi, psi, omega, then their cosines: [B, L, 6]. An angle that lacks a
// neighbour in the chain is 0. coords [B, L, 4, 3] holds N, CA, C, O; lengths
// int64 [B].
at::Tensor backbone_angles(const at::Tensor& coords, const at::Tensor& lengths);

// Edges lead from residue i to each of its nearest, by CA; K slots per residue,
// nearest first, of equals the lower number first.
struct ProteinGraph {
  at::Tensor neighbours = {};  // int64 [B, L, K]; in unused slots i itself.
  at::Tensor is_edge = {};     // bool [B, L, K].
  at::Tensor distances = {};   // [B, L, K].
  at::Tensor directions = {};  // [B, L, K, 3], of length 1, from i outwards.
  // For sums over what comes in. Nodes are numbered b * L + i, edges
  // (b * L + i) * K + k. An unused slot is received by a node that does not
  // exist, num_nodes() + its own: spread like this, no sum is long.
  at::Tensor receivers = {};  // int64 [edges].
  at::Tensor order = {};      // int64 [edges]: edges by receiver.
  // int64 [2 * num_nodes() + 1]: where those of a receiver begin.
  at::Tensor offsets = {};

  int64_t num_nodes() const { return neighbours.size(0) * neighbours.size(1); }
};

// K is `num_neighbours`, or one less than L if that is fewer, but at least 1.
ProteinGraph nearest_residues(const at::Tensor& coords,
                              const at::Tensor& lengths,
                              int64_t num_neighbours);

// values [edges, D] -> [nodes, D]: of each node the sum over its incoming
// edges, added in the order of edges. Has a gradient.
at::Tensor sum_incoming(const at::Tensor& values, const ProteinGraph& graph);

}  // namespace lockstep::protein
