// run.json: what a run is, and how it ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/track/curve_collector.h"
#include "lockstep/track/tracker.h"

namespace lockstep::track {

constexpr const char* kRunFile = "run.json";

struct RunEnd {
  int64_t unix_time = 0;  // Seconds.
  int exit_code = 0;
  std::string last_line = {};  // On the console.
};

struct RunInfo {
  std::string recipe = {};
  std::string host = {};
  int pid = 0;  // Rank 0.
  int num_processes = 1;
  int64_t total_steps = 0;  // 0: not known.
  int64_t started = 0;      // Unix time; a resumed run keeps that of the first.
  std::string log = "train.log";   // Below the run folder.
  PlottedMetric best = {};         // Selects the best model.
  std::optional<RunEnd> end = {};  // Unset: it runs, or was killed.
};

// No value for a text that is not such a file.
std::optional<RunInfo> parse_run_info(std::string_view text);
std::string run_info_text(const RunInfo& info);

// Written at the start and at the end.
class RunFile : public Tracker {
 public:
  // Sets host, process and, unless `info` has it, the start. Throws IoError.
  RunFile(const std::filesystem::path& folder, RunInfo info);

  std::string name() const override { return kRunFile; }
  void record(const Record& /*record*/) override {}
  void console(const ConsoleText& text) override;
  void finish(int exit_code) override;

 private:
  std::filesystem::path path_;
  RunInfo info_;
  std::string last_line_ = {};
};

}  // namespace lockstep::track
