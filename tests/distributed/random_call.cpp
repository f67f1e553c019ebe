#include "distributed/random_call.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace lockstep::testing {
namespace {

using comm::Element;
using comm::Reduction;
using comm::SharedCall;
using comm::SharedKind;

constexpr uint32_t kNumKinds = 5;
constexpr uint32_t kNumElements = 8;
constexpr uint32_t kNumReductions = 4;

}  // namespace

RandomCall::RandomCall(uint32_t seed, const ForkedRank& self)
    : random_(seed),
      rank_(self.rank),
      size_(static_cast<size_t>(self.size)),
      kind_(static_cast<SharedKind>(1 + random_() % kNumKinds)),
      element_(static_cast<Element>(random_() % kNumElements)),
      reduction_(static_cast<Reduction>(random_() % kNumReductions)),
      root_(static_cast<int>(random_() % size_)) {
  constexpr std::array<size_t, 5> kMost = {5, 2000, 40000, 400000, 1500000};
  count_ = 1 + random_() % kMost[random_() % kMost.size()];
  if (kind_ == SharedKind::kReduceScatter) count_ *= size_;
  in_heap_ = random_() % 2 == 0;
}

std::string RandomCall::run(ForkedRank& self) const {
  switch (element_) {
    case Element::kFloat64: return run_as<double>(self);
    case Element::kFloat32: return run_as<float>(self);
    case Element::kFloat16: return run_as<c10::Half>(self);
    case Element::kBFloat16: return run_as<c10::BFloat16>(self);
    case Element::kInt8: return run_as<int8_t>(self);
    case Element::kUint8: return run_as<uint8_t>(self);
    case Element::kInt32: return run_as<int32_t>(self);
    case Element::kInt64: return run_as<int64_t>(self);
  }
  return "no such type";
}

template <typename Number>
std::string RandomCall::run_as(ForkedRank& self) const {
  const size_t bytes = count_ * sizeof(Number);
  std::vector<Number> own(count_);
  for (size_t i = 0; i < count_; ++i) {
    own[i] = static_cast<Number>(value(rank_, i));
  }
  std::vector<Number> result = own;
  std::vector<std::vector<Number>> gathered;
  SharedCall call{.kind = kind_,
                  .element = element_,
                  .reduction = reduction_,
                  .root = root_,
                  .bytes = kind_ == SharedKind::kBarrier ? 0 : bytes,
                  .input = reinterpret_cast<const std::byte*>(own.data()),
                  .output = reinterpret_cast<std::byte*>(result.data())};
  if (kind_ == SharedKind::kAllReduce || kind_ == SharedKind::kBroadcast) {
    call.input = nullptr;
  }
  if (kind_ == SharedKind::kAllGather) {
    gathered.resize(size_, std::vector<Number>(count_));
    for (auto& one : gathered) {
      call.outputs.push_back(reinterpret_cast<std::byte*>(one.data()));
    }
  }
  std::byte* block = nullptr;
  if (kind_ == SharedKind::kAllReduce && in_heap_) {
    block = self.arena->allocate(bytes);
    std::memcpy(block, own.data(), bytes);
    call.output = block;
  }
  self.run(call);
  if (block != nullptr) {
    std::memcpy(static_cast<void*>(result.data()), block, bytes);
    self.arena->free(block);
  }
  return check(result, gathered);
}

// Sums of 8 ranks stay below 128, products of 1 and 2 are powers of two: exact
// in bfloat16. Integers of 8 bits wrap around, here as there.
int64_t RandomCall::value(int rank, size_t index) const {
  const auto number =
      static_cast<int64_t>(index * 7 + static_cast<size_t>(rank) * 13);
  const bool is_product = (kind_ == SharedKind::kAllReduce ||
                           kind_ == SharedKind::kReduceScatter) &&
                          reduction_ == Reduction::kProduct;
  return is_product ? 1 + number % 2 : number % 15;
}

int64_t RandomCall::reduced(size_t index) const {
  int64_t total = value(0, index);
  for (int rank = 1; rank < static_cast<int>(size_); ++rank) {
    const int64_t other = value(rank, index);
    switch (reduction_) {
      case Reduction::kSum: total += other; break;
      case Reduction::kProduct: total *= other; break;
      case Reduction::kMin: total = std::min(total, other); break;
      case Reduction::kMax: total = std::max(total, other); break;
    }
  }
  return total;
}

template <typename Number>
std::string RandomCall::check(
    const std::vector<Number>& result,
    const std::vector<std::vector<Number>>& gathered) const {
  const auto is = [](Number found, int64_t expected) {
    return found == static_cast<Number>(expected);
  };
  const size_t part = count_ / size_;
  for (size_t i = 0; i < count_; ++i) {
    bool good = true;
    switch (kind_) {
      case SharedKind::kAllReduce: good = is(result[i], reduced(i)); break;
      case SharedKind::kBroadcast: good = is(result[i], value(root_, i)); break;
      case SharedKind::kReduceScatter:
        good = i >= part ||
               is(result[i], reduced(static_cast<size_t>(rank_) * part + i));
        break;
      case SharedKind::kAllGather:
        for (size_t rank = 0; rank < size_; ++rank) {
          good =
              good && is(gathered[rank][i], value(static_cast<int>(rank), i));
        }
        break;
      case SharedKind::kBarrier: break;
    }
    if (!good) return describe(i);
  }
  return "";
}

std::string RandomCall::describe(size_t index) const {
  const auto number = [](auto name) {
    return std::to_string(static_cast<int>(name));
  };
  return "wrong value at " + std::to_string(index) + " of " +
         std::to_string(count_) + ", kind " + number(kind_) + ", type " +
         number(element_) + ", operation " + number(reduction_) +
         (in_heap_ ? ", in the heap" : "");
}

}  // namespace lockstep::testing
