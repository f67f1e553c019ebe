// The file of a Weights & Biases run: records one behind the other, in blocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/track/record_file.h"

namespace lockstep::track {

// The bytes that stand in the file at `offset` for one record: it is cut where
// a block of 32 KiB ends.
std::string wandb_frame(std::string_view record, uint64_t offset);

// A whole file with these records.
std::string wandb_log_bytes(std::span<const std::string> records);

// All records that are whole; what a killed process or a bad disk left behind
// is skipped. Throws IoError when the file cannot be read, FormatError when it
// is something else.
std::vector<std::string> read_wandb_log(const std::filesystem::path& path);

// Appends records, each with one write, so that a killed process leaves at most
// one torn record at the end. Not thread-safe.
class WandbLog {
 public:
  // Begins the file when it is new or empty, else goes on behind its bytes.
  // Throws IoError.
  explicit WandbLog(std::filesystem::path path);

  // Throws IoError when the record is not in the file. The file then ends with
  // the record before it, and the next call tries again there.
  void append(std::string_view record);

 private:
  RecordFile file_;
};

}  // namespace lockstep::track
