// metrics.jsonl: one line of JSON per record of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep {

// What stays of an earlier part of a run when it goes on.
struct KeptMetrics {
  int64_t last_step = 0;  // Later lines go.
  // Of the last step, lines with a name that begins so go too: that work is
  // done again. Empty: none.
  std::string redone = {};
};

// {"step":120,"train/loss":0.25,...}; numbers with all their digits, NaN and
// infinities as texts. Every line is written at once, so that a reader sees
// whole lines only. Not thread-safe.
class MetricsFile {
 public:
  // Drops what the run will write again, so that it tells each step once.
  // Throws IoError.
  MetricsFile(std::filesystem::path path, const KeptMetrics& kept);

  // False when the line could not be written: a full disk is no reason to stop
  // training.
  bool append(int64_t step,
              const std::vector<std::pair<std::string, double>>& metrics);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace lockstep
