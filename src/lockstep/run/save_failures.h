// Saves of a run that failed: how many in a row, and what to say of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::run {

struct FailedSave {
  std::filesystem::path path = {};
  std::string error = {};
  bool has_older = false;  // The folder holds checkpoints to resume from.
};

// The notes belong to one thread at a time; the others may be called by any.
class SaveFailures {
 public:
  static constexpr int64_t kTooMany = 3;

  void note_saved(int64_t step);
  // What to tell the user; from kTooMany in a row on it cannot be overlooked.
  std::string note_failed(const FailedSave& save);

  int64_t in_a_row() const { return in_a_row_; }
  // Throws IoError when kTooMany or more in a row have failed.
  void require_saves(const std::filesystem::path& folder) const;

 private:
  std::atomic<int64_t> in_a_row_ = 0;
  std::optional<int64_t> saved_step_ = {};
};

}  // namespace lockstep::run
