// metrics.jsonl: one line of JSON per record of a run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "lockstep/track/record_file.h"
#include "lockstep/track/tracker.h"

namespace lockstep::track {

// {"step":120,"train/loss":0.25,...}; numbers with all their digits, NaN and
// infinities as texts. Every line is written at once, so that a reader sees
// whole lines only. Images and notes are not in it; a record of those alone
// makes no line.
class MetricsFile : public Tracker {
 public:
  // Drops what the run will write again, so that each step appears once. Throws
  // IoError.
  MetricsFile(const std::filesystem::path& path, const KeptRecords& kept);

  std::string name() const override { return "metrics.jsonl"; }
  void record(const Record& record) override;

 private:
  RecordFile file_;
};

// Calls `each` with every record of such a file, in order; without a time,
// which the file does not hold. Lines that are not records are skipped; a
// missing file has none. Throws IoError.
void read_metrics(const std::filesystem::path& path,
                  const std::function<void(Record)>& each);

}  // namespace lockstep::track
