// metrics.csv: a table for spreadsheets and data frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/track/record_file.h"
#include "lockstep/track/tracker.h"

namespace lockstep::track {

// One row per step, one column per metric in order of first appearance, after
// the column "step". Numbers with all their digits; nan, inf and -inf; empty
// where a step has no such metric. Odd names are quoted as in RFC 4180; lines
// end with a newline alone. Rows appear whole; a new metric rewrites the whole
// table atomically.
class CsvFile : public Tracker {
 public:
  // Begins with what `metrics` (metrics.jsonl, after MetricsFile dropped what
  // goes) holds; of a new run that is nothing. Throws IoError.
  CsvFile(const std::filesystem::path& path,
          const std::filesystem::path& metrics);

  std::string name() const override { return "metrics.csv"; }
  void record(const Record& record) override;

 private:
  // The cell of the row for this metric, with a new column when it is new.
  std::string& cell(const std::string& name);
  std::string row_text() const;
  void write_wider_table();

  RecordFile file_;
  size_t header_bytes_ = 0;
  size_t num_columns_written_ = 0;
  std::vector<std::string> columns_ = {};  // Without "step".
  int64_t step_ = 0;
  std::vector<std::string> row_ = {};  // Values of the current step.
  size_t row_bytes_ = 0;               // 0: the row is not in the file.
};

}  // namespace lockstep::track
