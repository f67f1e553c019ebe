// A data set without its damaged files.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "lockstep/dataset.h"

namespace lockstep::data {

struct BadSamples {
  int64_t count = 0;  // Each sample counts once.
  // Messages of the first 10,000. They name the file, so that a sample that
  // several data sets or ranks report counts once.
  std::vector<std::string> messages = {};
};

// Where a sample of another data set cannot be read (FormatError, IoError), the
// next one that can be takes its place, with the same seed; behind the last
// comes the first. So the same one on every rank and thread.
class SkipBadSamples final : public Dataset {
 public:
  // Bad samples one after the other until it is taken for a broken data set.
  static constexpr int64_t kMaxInARow = 64;

  explicit SkipBadSamples(std::shared_ptr<const Dataset> whole);

  int64_t size() const override { return whole_->size(); }
  // Throws FormatError when kMaxInARow samples, or all, are bad.
  Sample get(int64_t index, uint64_t seed) const override;
  Sample collate(std::vector<Sample> samples) const override;
  std::vector<int64_t> lengths() const override { return whole_->lengths(); }

  // What was found until now. Safe to call while other threads read.
  BadSamples bad() const;

 private:
  void note(int64_t index, const std::string& message) const;

  std::shared_ptr<const Dataset> whole_;
  mutable std::mutex mutex_;
  mutable std::set<int64_t> bad_;              // guarded by mutex_
  mutable std::vector<std::string> messages_;  // guarded by mutex_
};

}  // namespace lockstep::data
