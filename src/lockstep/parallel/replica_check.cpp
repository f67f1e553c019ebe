#include "lockstep/parallel/replica_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>

namespace lockstep::parallel {
namespace {

// One number per tensor: the sum of its words, word i times 2 i + 1. A flipped
// bit always changes it, and so do two in one tensor, also opposite ones.
using Fingerprint = std::vector<int64_t>;

// Words that are multiplied at once, so that the products stay in a cache, or
// take little of a GPU's memory and few kernels.
constexpr int64_t kBlockOnCpu = 1 << 16;
constexpr int64_t kBlockOnGpu = 1 << 24;

at::Tensor memory_of(const at::Tensor& tensor) {
  return tensor.detach().as_strided({tensor.numel()}, {1});
}

at::Tensor words_of(const at::Tensor& tensor) {
  const auto bytes = tensor.element_size();
  const auto type = bytes >= 4 ? at::kInt : bytes == 2 ? at::kShort : at::kChar;
  return memory_of(tensor).view(type);
}

// 2 i + 1 for the positions i of a block.
at::Tensor weights_of_block(const std::vector<NamedTensor>& tensors) {
  const auto device = tensors[0].tensor.device();
  int64_t longest = 0;
  for (const NamedTensor& named : tensors) {
    longest = std::max(longest, words_of(named.tensor).numel());
  }
  const int64_t block = device.is_cuda() ? kBlockOnGpu : kBlockOnCpu;
  return at::arange(std::min(longest, block),
                    at::TensorOptions(at::kLong).device(device))
      .mul_(2)
      .add_(1);
}

at::Tensor weighted_sum(const at::Tensor& words, const at::Tensor& weights) {
  const int64_t block = weights.numel();
  at::Tensor total = at::zeros({}, weights.options());
  for (int64_t begin = 0; begin < words.numel(); begin += block) {
    at::Tensor part =
        words.slice(0, begin, begin + block).to(weights.options());
    // The weights of a later block are those of the first and 2 begin.
    if (begin > 0) total += part.sum() * (2 * begin);
    total += part.mul_(weights.slice(0, 0, part.numel())).sum();
  }
  return total;
}

at::Tensor fingerprint_of(const std::vector<NamedTensor>& tensors) {
  const at::Tensor weights = weights_of_block(tensors);
  std::vector<at::Tensor> sums;
  for (const NamedTensor& named : tensors) {
    sums.push_back(weighted_sum(words_of(named.tensor), weights));
  }
  return at::stack(sums).to(at::kCPU);
}

// One per rank.
std::vector<Fingerprint> exchange(const World& world, const at::Tensor& own) {
  std::vector<Fingerprint> all;
  for (const at::Tensor& sums : world.all_gather(own)) {
    const auto* begin = sums.const_data_ptr<int64_t>();
    all.emplace_back(begin, begin + sums.numel());
  }
  return all;
}

// The lowest rank of more than half of the ranks that agree; no value when
// there is no such half.
std::optional<int> find_majority(const std::vector<Fingerprint>& all) {
  std::map<Fingerprint, std::vector<int>> groups;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    groups[all[rank]].push_back(static_cast<int>(rank));
  }
  for (const auto& [fingerprint, ranks] : groups) {
    if (2 * ranks.size() > all.size()) return ranks.front();
  }
  return std::nullopt;
}

}  // namespace

std::optional<Divergence> compare_replicas(
    const World& world, const std::vector<NamedTensor>& tensors) {
  if (world.size() == 1 || tensors.empty()) return std::nullopt;
  const at::NoGradGuard no_grad;
  const auto all = exchange(world, fingerprint_of(tensors));
  if (std::all_of(all.begin(), all.end(),
                  [&](const Fingerprint& other) { return other == all[0]; })) {
    return std::nullopt;
  }
  const auto source = find_majority(all);
  const Fingerprint& right = all[source.value_or(0)];
  Divergence divergence{.is_healed = source.has_value()};
  for (int rank = 0; rank < world.size(); ++rank) {
    if (!source || all[rank] != right) divergence.ranks.push_back(rank);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool differs = std::any_of(
        all.begin(), all.end(),
        [&](const Fingerprint& other) { return other[i] != right[i]; });
    if (!differs) continue;
    divergence.names.push_back(tensors[i].name);
    if (!source) continue;
    at::Tensor memory = memory_of(tensors[i].tensor);
    world.broadcast(memory, *source);
  }
  return divergence;
}

}  // namespace lockstep::parallel
