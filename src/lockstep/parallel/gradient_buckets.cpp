#include "lockstep/parallel/gradient_buckets.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "lockstep/comm/shared_arena.h"

namespace lockstep::parallel {
namespace {

// Their elements lie in memory in the same order.
bool is_laid_out_alike(const at::Tensor& gradient,
                       const at::Tensor& parameter) {
  return gradient.scalar_type() == parameter.scalar_type() &&
         gradient.strides() == parameter.strides() &&
         parameter.is_non_overlapping_and_dense();
}

std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

}  // namespace

GradientBuckets::GradientBuckets(const World& world,
                                 std::vector<at::Tensor> parameters)
    : world_(world),
      arena_(world.shared_arena()),
      parameters_(std::move(parameters)) {
  share_evenly();
}

GradientBuckets::~GradientBuckets() { unite_sums(); }

// Blocks of shared memory that gradients fill without gaps. The first has the
// parameter that comes first: heaps may differ between the ranks.
std::vector<GradientBuckets::Bucket> GradientBuckets::find() const {
  std::map<size_t, std::vector<size_t>> blocks;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].grad();
    if (!gradient.defined() || gradient.numel() == 0 ||
        !is_laid_out_alike(gradient, parameters_[i])) {
      continue;
    }
    const auto block = arena_->block_of(gradient.data_ptr(), gradient.nbytes());
    if (block) blocks[*block].push_back(i);
  }
  std::vector<Bucket> buckets;
  for (auto& [offset, members] : blocks) {
    std::sort(members.begin(), members.end(), [&](size_t a, size_t b) {
      return parameters_[a].grad().data_ptr() <
             parameters_[b].grad().data_ptr();
    });
    const std::byte* end = arena_->at(world_.rank(), offset);
    bool is_filled = true;
    for (const size_t member : members) {
      const at::Tensor& gradient = parameters_[member].grad();
      is_filled = is_filled && gradient.data_ptr() == end;
      end += gradient.nbytes();
    }
    if (!is_filled) continue;
    Bucket& bucket = buckets.emplace_back(Bucket{.members = members});
    bucket.offsets.assign(world_.size(), 0);
    bucket.offsets[world_.rank()] = static_cast<int64_t>(offset);
  }
  const auto first = [](const Bucket& bucket) {
    return *std::min_element(bucket.members.begin(), bucket.members.end());
  };
  std::sort(
      buckets.begin(), buckets.end(),
      [&](const Bucket& a, const Bucket& b) { return first(a) < first(b); });
  return buckets;
}

// Its last gradients may be missing in a step.
bool GradientBuckets::is_known(const Bucket& bucket) const {
  const int self = world_.rank();
  return std::any_of(
      buckets_.begin(), buckets_.end(), [&](const Bucket& known) {
        return known.offsets[self] == bucket.offsets[self] &&
               known.members.size() >= bucket.members.size() &&
               std::equal(bucket.members.begin(), bucket.members.end(),
                          known.members.begin());
      });
}

bool GradientBuckets::is_in_place(const Bucket& bucket) const {
  const int self = world_.rank();
  const std::byte* begin = arena_->at(self, bucket.offsets[self]);
  return std::all_of(
      bucket.members.begin(), bucket.members.end(), [&](size_t member) {
        const at::Tensor& gradient = parameters_[member].grad();
        return !gradient.defined() ||
               gradient.data_ptr() == begin + places_[member]->offset;
      });
}

void GradientBuckets::compare_places() {
  const auto found = find();
  bool is_settled =
      std::all_of(found.begin(), found.end(),
                  [&](const Bucket& bucket) { return is_known(bucket); });
  for (Bucket& bucket : buckets_) {
    bucket.is_in_place = is_in_place(bucket);
    is_settled = is_settled && bucket.is_in_place;
  }
  have_moved_ = !world_.all(is_settled);
  if (!have_moved_) return;
  for (Bucket& bucket : buckets_) {
    bucket.is_in_place = world_.all(bucket.is_in_place);
  }
}

void GradientBuckets::complete(size_t parameter) const {
  const auto& place = places_[parameter];
  if (!place || !buckets_[place->bucket].is_in_place) return;
  const at::Tensor& gradient = parameters_[parameter].grad();
  const ElementEdges& edges = edges_[parameter];
  const auto element_bytes = static_cast<int64_t>(gradient.element_size());
  for (int rank = 0; rank < world_.size(); ++rank) {
    const int64_t begin = edges[rank] * element_bytes;
    const int64_t end = edges[rank + 1] * element_bytes;
    if (rank == world_.rank() || begin == end) continue;
    const std::byte* theirs =
        arena_->at(rank, buckets_[place->bucket].offsets[rank]) + place->offset;
    std::memcpy(bytes_of(gradient) + begin, theirs + begin, end - begin);
  }
}

// Whether all ranks found the same gradients in the same order.
bool GradientBuckets::all_have(const std::vector<Bucket>& buckets) const {
  comm::ReduceEdges members;
  for (const Bucket& bucket : buckets) {
    members.push_back(bucket.members.size());
    members.insert(members.end(), bucket.members.begin(), bucket.members.end());
  }
  const auto own = static_cast<int64_t>(comm::fingerprint(members));
  const int64_t first = world_.run_on_rank0_and_broadcast([&] { return own; });
  return world_.all(own == first);
}

void GradientBuckets::exchange_offsets(std::vector<Bucket>& buckets) const {
  for (Bucket& bucket : buckets) {
    at::Tensor offsets = at::tensor(bucket.offsets, at::kLong);
    world_.all_reduce(offsets);
    std::copy_n(offsets.const_data_ptr<int64_t>(), offsets.numel(),
                bucket.offsets.begin());
  }
}

bool GradientBuckets::follow() {
  if (!have_moved_) return false;
  unite_sums();
  buckets_ = find();
  if (all_have(buckets_)) {
    exchange_offsets(buckets_);
  } else {
    buckets_.clear();
  }
  share_evenly();
  split_sums();
  return true;
}

// The parameters of each bucket, and those in none, are divided on their own.
void GradientBuckets::share_evenly() {
  edges_.assign(parameters_.size(), {});
  places_.assign(parameters_.size(), std::nullopt);
  const auto divide = [&](const std::vector<size_t>& members) {
    std::vector<int64_t> counts;
    for (const size_t member : members) {
      counts.push_back(parameters_[member].numel());
    }
    const auto edges = split_evenly(counts, world_.size());
    for (size_t i = 0; i < members.size(); ++i) edges_[members[i]] = edges[i];
  };
  for (size_t i = 0; i < buckets_.size(); ++i) {
    size_t offset = 0;
    for (const size_t member : buckets_[i].members) {
      places_[member] = Place{.bucket = i, .offset = offset};
      offset += parameters_[member].nbytes();
    }
    divide(buckets_[i].members);
  }
  std::vector<size_t> others;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!places_[i]) others.push_back(i);
  }
  divide(others);
}

void GradientBuckets::split_sums() const {
  for (const Bucket& bucket : buckets_) {
    comm::ReduceEdges split(world_.size() + 1);
    for (const size_t member : bucket.members) {
      for (size_t rank = 0; rank < split.size(); ++rank) {
        split[rank] +=
            edges_[member][rank] * parameters_[member].element_size();
      }
    }
    arena_->splits().set(bucket.offsets[world_.rank()], std::move(split));
  }
}

void GradientBuckets::unite_sums() const {
  for (const Bucket& bucket : buckets_) {
    arena_->splits().erase(bucket.offsets[world_.rank()]);
  }
}

}  // namespace lockstep::parallel
