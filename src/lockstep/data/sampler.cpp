#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>
#include <fmt/format.h>

#include <numeric>

#include "lockstep/distributed_sampler.h"
#include "lockstep/error.h"

namespace lockstep {

DistributedSampler::DistributedSampler(int64_t num_samples, Shard shard,
                                       SamplerConfig config)
    : num_samples_(num_samples), shard_(shard), config_(config) {
  if (num_samples <= 0) {
    throw ConfigError(
        "the data set is empty: check its path and what is in the folder");
  }
  if (shard.size < 1 || shard.rank < 0 || shard.rank >= shard.size) {
    throw ConfigError(fmt::format("rank {} of {} is not a shard of a data set",
                                  shard.rank, shard.size));
  }
}

// With kPad and kDrop the number of indices of all ranks together.
int64_t DistributedSampler::padded_size() const {
  const int64_t ranks = shard_.size;
  if (config_.uneven == Uneven::kDrop) return num_samples_ / ranks * ranks;
  return (num_samples_ + ranks - 1) / ranks * ranks;
}

int64_t DistributedSampler::size() const {
  if (config_.uneven == Uneven::kExact) {
    return (num_samples_ - shard_.rank + shard_.size - 1) / shard_.size;
  }
  return padded_size() / shard_.size;
}

// Python's torch.randperm with a generator seeded with seed + epoch: the same
// kernel.
std::vector<int64_t> DistributedSampler::order(int64_t epoch) const {
  std::vector<int64_t> indices(num_samples_);
  if (!config_.shuffle) {
    std::iota(indices.begin(), indices.end(), int64_t{0});
    return indices;
  }
  const auto generator = at::detail::createCPUGenerator(
      config_.seed + static_cast<uint64_t>(epoch));
  const at::Tensor permutation = at::randperm(
      num_samples_, generator, at::TensorOptions().dtype(at::kLong));
  const auto* begin = permutation.const_data_ptr<int64_t>();
  std::copy(begin, begin + num_samples_, indices.begin());
  return indices;
}

std::vector<int64_t> DistributedSampler::indices(int64_t epoch) const {
  const std::vector<int64_t> all = order(epoch);
  std::vector<int64_t> own;
  own.reserve(size());
  for (int64_t i = 0; i < size(); ++i) {
    // After the end the order starts again: Python's padding, also when it
    // needs several turns.
    own.push_back(all[(shard_.rank + i * shard_.size) % num_samples_]);
  }
  return own;
}

}  // namespace lockstep
