// Counts failed saves in a row and words their messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

namespace lockstep::run {

struct FailedSave {
  std::filesystem::path path = {};
  std::string error = {};
  bool has_older = false;  // The folder holds checkpoints to resume from.
};

// note_...() are called by one thread at a time; the other functions by any.
class SaveFailures {
 public:
  static constexpr int64_t kTooMany = 3;

  void note_saved(int64_t step);
  // Returns the message to log; prominent after kTooMany in a row.
  std::string note_failed(const FailedSave& save);

  int64_t in_a_row() const { return in_a_row_; }
  // Why the last failed save failed; empty: none has.
  std::string last_error() const;
  // Throws IoError after kTooMany or more failures in a row.
  void require_saves(const std::filesystem::path& folder) const;

 private:
  std::atomic<int64_t> in_a_row_ = 0;
  mutable std::mutex mutex_;
  std::string last_error_ = {};  // Under the mutex.
  std::optional<int64_t> saved_step_ = {};
};

}  // namespace lockstep::run
