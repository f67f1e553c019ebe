#include "lockstep/models/protein/graph.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace lockstep::protein {
namespace {

constexpr int kAtomN = 0;
constexpr int kAtomCa = 1;
constexpr int kAtomC = 2;

struct AngleParts {
  at::Tensor sine = {};
  at::Tensor cosine = {};
};

// The dihedral angle of points [..., 3]. By atan2: an inverse cosine would lose
// half of the digits near 180 degrees, where omega lies.
AngleParts dihedral(const at::Tensor& a, const at::Tensor& b,
                    const at::Tensor& c, const at::Tensor& d) {
  const at::Tensor v1 = b - a;
  const at::Tensor v2 = c - b;
  const at::Tensor v3 = d - c;
  const at::Tensor n1 = at::linalg_cross(v1, v2);
  const at::Tensor n2 = at::linalg_cross(v2, v3);
  const at::Tensor x = (n1 * n2).sum(-1);
  const at::Tensor y = (n1 * v3).sum(-1) * v2.norm(2, -1);
  const at::Tensor angle = at::atan2(y, x);
  return {.sine = angle.sin(), .cosine = angle.cos()};
}

// The next (or, with -1, the previous) row; at the ends the values are
// arbitrary.
at::Tensor shifted(const at::Tensor& rows, int64_t by) {
  return at::roll(rows, {-by}, {1});
}

at::Tensor positions_of(const at::Tensor& coords) {
  return at::arange(coords.size(1), coords.options().dtype(at::kLong));
}

// The upper half holds the distance's bits, which sort like the distance; the
// lower half holds the position, which breaks ties. Keys are unique, so every
// selection algorithm gives the same result.
at::Tensor distance_keys(const at::Tensor& ca, const at::Tensor& lengths) {
  const at::Tensor positions = positions_of(ca);
  at::Tensor squared;
  for (const at::Tensor& axis : ca.to(at::kFloat).unbind(-1)) {
    const at::Tensor part = (axis.unsqueeze(2) - axis.unsqueeze(1)).square_();
    squared = squared.defined() ? squared.add_(part) : part;
  }
  at::Tensor keys = squared.view(at::kInt).to(at::kLong);
  keys.bitwise_left_shift_(32).bitwise_or_(positions);
  const at::Tensor is_real = positions < lengths.unsqueeze(1);
  const at::Tensor is_self = positions.unsqueeze(1) == positions;
  const at::Tensor is_none =
      is_self | ~(is_real.unsqueeze(2) & is_real.unsqueeze(1));
  return keys.masked_fill_(is_none, std::numeric_limits<int64_t>::max());
}

// Sorts edges by receiver, stably.
void sort_by_receiver(ProteinGraph& graph) {
  const int64_t num_nodes = graph.num_nodes();
  const int64_t length = graph.neighbours.size(1);
  const at::Tensor nodes =
      at::arange(num_nodes, graph.neighbours.options()).view({-1, length, 1});
  const at::Tensor first_of_protein = nodes.slice(1, 0, 1);
  graph.receivers =
      at::where(graph.is_edge, graph.neighbours + first_of_protein,
                nodes + num_nodes)
          .flatten();
  const auto [sorted, order] =
      at::sort(graph.receivers, std::optional<bool>(true), /*dim=*/0);
  graph.order = order;
  graph.offsets = at::searchsorted(
      sorted, at::arange(2 * num_nodes + 1, graph.receivers.options()));
}

template <typename Value>
void add_rows(const at::Tensor& values, const ProteinGraph& graph,
              at::Tensor& sums) {
  const int64_t width = values.size(1);
  const auto* rows = values.const_data_ptr<Value>();
  const auto* order = graph.order.const_data_ptr<int64_t>();
  const auto* offsets = graph.offsets.const_data_ptr<int64_t>();
  auto* out = sums.mutable_data_ptr<Value>();
  at::parallel_for(0, sums.size(0), 64, [&](int64_t begin, int64_t end) {
    for (int64_t node = begin; node < end; ++node) {
      Value* sum = out + node * width;
      std::fill_n(sum, width, Value{0});
      for (int64_t i = offsets[node]; i < offsets[node + 1]; ++i) {
        const Value* row = rows + order[i] * width;
        for (int64_t k = 0; k < width; ++k) sum[k] += row[k];
      }
    }
  });
}

// On CUDA an embedding bag computes one node's sum without atomic adds, whose
// order would change from run to run. The last bag takes the unused slots.
at::Tensor summed(const at::Tensor& values, const ProteinGraph& graph) {
  const int64_t num_nodes = graph.num_nodes();
  if (values.is_cuda()) {
    return std::get<0>(at::_embedding_bag_forward_only(
                           values, graph.order,
                           graph.offsets.slice(0, 0, 2 * num_nodes)))
        .slice(0, 0, num_nodes);
  }
  at::Tensor sums = at::empty({num_nodes, values.size(1)}, values.options());
  AT_DISPATCH_FLOATING_TYPES_AND(
      at::kBFloat16, values.scalar_type(), "sum_incoming",
      [&] { add_rows<scalar_t>(values, graph, sums); });
  return sums;
}

struct SumIncoming : torch::autograd::Function<SumIncoming> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& values,
                            const ProteinGraph& graph) {
    context->save_for_backward({graph.receivers});
    return summed(values.contiguous(), graph);
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list gradients) {
    const at::Tensor receivers = context->get_saved_variables()[0];
    // Zeros for unused slots.
    const at::Tensor of_nodes =
        at::constant_pad_nd(gradients[0], {0, 0, 0, gradients[0].size(0)});
    return {of_nodes.index_select(0, receivers), at::Tensor()};
  }
};

}  // namespace

at::Tensor backbone_angles(const at::Tensor& coords,
                           const at::Tensor& lengths) {
  const at::Tensor n = coords.select(2, kAtomN);
  const at::Tensor ca = coords.select(2, kAtomCa);
  const at::Tensor c = coords.select(2, kAtomC);
  const at::Tensor next_n = shifted(n, 1);
  const AngleParts phi = dihedral(shifted(c, -1), n, ca, c);
  const AngleParts psi = dihedral(n, ca, c, next_n);
  const AngleParts omega = dihedral(ca, c, next_n, shifted(ca, 1));
  const at::Tensor positions = positions_of(coords);
  const at::Tensor lacks_previous =
      (positions == 0).expand({coords.size(0), -1});
  const at::Tensor lacks_next = positions >= (lengths.unsqueeze(1) - 1);
  const at::Tensor is_missing =
      at::stack({lacks_previous, lacks_next, lacks_next}, -1);
  const at::Tensor sines = at::stack({phi.sine, psi.sine, omega.sine}, -1)
                               .masked_fill(is_missing, 0);
  const at::Tensor cosines =
      at::stack({phi.cosine, psi.cosine, omega.cosine}, -1)
          .masked_fill(is_missing, 1);
  return at::cat({sines, cosines}, -1);
}

ProteinGraph nearest_residues(const at::Tensor& coords,
                              const at::Tensor& lengths,
                              int64_t num_neighbours) {
  const int64_t batch = coords.size(0);
  const int64_t length = coords.size(1);
  const int64_t count =
      std::clamp<int64_t>(num_neighbours, 1, std::max<int64_t>(length - 1, 1));
  const at::Tensor ca = coords.select(2, kAtomCa).contiguous();
  const at::Tensor keys = std::get<0>(
      distance_keys(ca, lengths).topk(count, /*dim=*/2, /*largest=*/false));
  ProteinGraph graph;
  graph.is_edge = keys != std::numeric_limits<int64_t>::max();
  graph.neighbours = at::where(graph.is_edge, keys.bitwise_and(0xffffffff),
                               positions_of(coords).view({1, -1, 1}));
  const at::Tensor targets =
      ca.gather(1, graph.neighbours.view({batch, -1, 1}).expand({-1, -1, 3}))
          .view({batch, length, count, 3});
  const at::Tensor ways = targets - ca.unsqueeze(2);
  const at::Tensor lengths_of_ways = ways.norm(2, {-1}, /*keepdim=*/true);
  graph.distances = lengths_of_ways.squeeze(-1);
  graph.directions = ways / (lengths_of_ways + 1e-8);
  sort_by_receiver(graph);
  return graph;
}

at::Tensor sum_incoming(const at::Tensor& values, const ProteinGraph& graph) {
  return SumIncoming::apply(values, graph);
}

}  // namespace lockstep::protein
