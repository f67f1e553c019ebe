// metrics.jsonl: one line of JSON per record of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep {

// {"step":120,"train/loss":0.25,...}; numbers with all their digits, NaN and
// infinities as texts. Every line is written at once, so that a reader sees
// whole lines only. Not thread-safe.
class MetricsFile {
 public:
  // Keeps what an earlier part of the run wrote up to `last_step` and drops
  // later lines, so that a run that goes on from there tells each step once.
  // Throws IoError.
  MetricsFile(std::filesystem::path path, int64_t last_step);

  // False when the line could not be written: a full disk is no reason to stop
  // training.
  bool append(int64_t step,
              const std::vector<std::pair<std::string, double>>& metrics);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace lockstep
