// metrics.jsonl: one line of JSON per record of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/track/tracker.h"

namespace lockstep {

// {"step":120,"train/loss":0.25,...}; numbers with all their digits, NaN and
// infinities as texts. Every line is written at once, so that a reader sees
// whole lines only. Not thread-safe.
class MetricsFile {
 public:
  // Drops what the run will write again, so that it tells each step once.
  // Throws IoError.
  MetricsFile(std::filesystem::path path, const KeptRecords& kept);

  // False when the line could not be written: a full disk is no reason to stop
  // training.
  bool append(int64_t step,
              const std::vector<std::pair<std::string, double>>& metrics);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace lockstep
