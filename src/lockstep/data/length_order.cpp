#include "lockstep/data/length_order.h"

#include <algorithm>
#include <numeric>

#include "lockstep/random.h"

namespace lockstep::data {
namespace {

constexpr size_t kRun = 64;
// Samples that are sorted together: enough runs for similar lengths.
constexpr size_t kPool = 32 * kRun;
// Lengths count up to this much more, drawn anew in every epoch: else the same
// samples would meet every time.
constexpr double kSpread = 0.1;

}  // namespace

std::vector<int64_t> order_by_length(std::vector<int64_t> order,
                                     const std::vector<int64_t>& lengths,
                                     const LengthOrderConfig& config) {
  RandomStream random(mix_bits(config.seed ^ mix_bits(config.epoch)));
  std::vector<double> keys;
  keys.reserve(lengths.size());
  for (const int64_t length : lengths) {
    keys.push_back(static_cast<double>(length) *
                   (1 + kSpread * random.uniform()));
  }
  const auto is_shorter = [&](int64_t a, int64_t b) {
    return keys.at(static_cast<size_t>(a)) < keys.at(static_cast<size_t>(b));
  };
  for (size_t begin = 0; begin < order.size(); begin += kPool) {
    const size_t end = std::min(begin + kPool, order.size());
    std::stable_sort(order.begin() + static_cast<int64_t>(begin),
                     order.begin() + static_cast<int64_t>(end), is_shorter);
  }
  std::vector<size_t> runs(order.size() / kRun);
  std::iota(runs.begin(), runs.end(), size_t{0});
  random.shuffle(runs);
  std::vector<int64_t> result;
  result.reserve(order.size());
  for (const size_t run : runs) {
    const auto first = order.begin() + static_cast<int64_t>(run * kRun);
    result.insert(result.end(), first, first + kRun);
  }
  result.insert(result.end(),
                order.begin() + static_cast<int64_t>(runs.size() * kRun),
                order.end());
  return result;
}

}  // namespace lockstep::data
