#include "lockstep/data/skip_bad_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr size_t kMaxMessages = 10'000;

}  // namespace

SkipBadSamples::SkipBadSamples(std::shared_ptr<const Dataset> whole)
    : whole_(std::move(whole)) {}

Sample SkipBadSamples::get(int64_t index, uint64_t seed) const {
  const int64_t attempts = std::min(kMaxInARow, size());
  std::string problem;
  for (int64_t i = 0; i < attempts; ++i) {
    const int64_t place = (index + i) % size();
    try {
      return whole_->get(place, seed);
    } catch (const FormatError& error) {
      problem = error.what();
    } catch (const IoError& error) {
      problem = error.what();
    }
    note(place, problem);
  }
  throw FormatError(fmt::format(
      "{} samples one after the other cannot be read, from sample {} on: that "
      "is more than a single bad file. The last one: {}",
      attempts, index, problem));
}

Sample SkipBadSamples::collate(std::vector<Sample> samples) const {
  return whole_->collate(std::move(samples));
}

BadSamples SkipBadSamples::bad() const {
  const std::lock_guard lock(mutex_);
  return {.count = static_cast<int64_t>(bad_.size()), .messages = messages_};
}

void SkipBadSamples::note(int64_t index, const std::string& message) const {
  const std::lock_guard lock(mutex_);
  const bool is_new = bad_.insert(index).second;
  if (is_new && messages_.size() < kMaxMessages) messages_.push_back(message);
}

}  // namespace lockstep::data
