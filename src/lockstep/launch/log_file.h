// The log files that the launcher writes, and what a full disk takes from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "lockstep/base/files.h"
#include "lockstep/launch/console_stream.h"

namespace lockstep::launch {

// Counts lost lines over all files and attempts of a job. The first loss is
// reported on the console at once.
class LogLosses {
 public:
  // The console must outlive this object.
  explicit LogLosses(ConsoleStream& console) : console_(console) {}

  void add(const std::filesystem::path& file, const std::string& reason);
  // One line for the end of the job; empty when nothing was lost.
  std::string summary() const;

 private:
  ConsoleStream& console_;
  std::map<std::filesystem::path, int64_t> lines_;  // by file
  std::string reason_;                              // of the first loss
};

// Appends whole lines to a file. A line that cannot be written is counted and
// dropped; the next one is tried again, and reports how many are missing.
class WorkerLogFile {
 public:
  // `losses` is not owned; nullptr: nobody counts. Throws IoError when the file
  // cannot be opened.
  WorkerLogFile(std::filesystem::path path, LogLosses* losses);

  void write(std::string_view line);

 private:
  bool append(std::string_view text);

  std::filesystem::path path_;
  base::FileDescriptor file_;
  LogLosses* losses_;
  int64_t missing_ = 0;  // lines lost since the last one that was written
  bool is_cut_ = false;  // the file ends in a part of a lost line
};

// Opens a file for appending. Throws IoError.
base::FileDescriptor open_log_file(const std::filesystem::path& path);

}  // namespace lockstep::launch
