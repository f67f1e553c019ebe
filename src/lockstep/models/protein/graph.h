// Input of the encoder: angles of residues and a graph of nearest neighbours.
//
// Computed for a whole batch on its device, without synchronisation. Padding is
// ignored, so a protein's result does not depend on its batch.
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
  // For sums over incoming edges. Nodes are numbered b * L + i, edges (b * L +
  // i) * K + k. The receiver of an unused slot is a node that does not exist,
  // num_nodes() + its own number, so that no sum is long.
  at::Tensor receivers = {};  // int64 [edges].
  at::Tensor order = {};      // int64 [edges]: edges by receiver.
  // int64 [2 * num_nodes() + 1]: where a receiver's edges begin.
  at::Tensor offsets = {};

  int64_t num_nodes() const { return neighbours.size(0) * neighbours.size(1); }
};

// K is `num_neighbours`, or one less than L if that is fewer, but at least 1.
ProteinGraph nearest_residues(const at::Tensor& coords,
                              const at::Tensor& lengths,
                              int64_t num_neighbours);

// values [edges, D] -> [nodes, D]: per node the sum over its incoming edges, in
// the order of edges. Differentiable.
at::Tensor sum_incoming(const at::Tensor& values, const ProteinGraph& graph);

}  // namespace lockstep::protein
