// The verdict: one class of cause for a failed job, what shows it and the next
// command to type.
//
// Pure functions over what the launcher knows when a job is over. The texts are
// those of docs/reference/verdicts.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/launch/failure_report.h"
#include "lockstep/launch/verdict.h"

namespace lockstep::launch {

enum class Cause {
  kGpuMemory,
  kHostMemory,
  kException,
  kSignal,
  kDataStarvation,
  kUnequalBatches,
  kDesync,
  kStall,
  kPort,
  kInterface,
  kSharedMemory,
  kDiskFull,
  kNan,
};

// Words of a class. `next` holds the words ERROR_FILE, JOB and RUN where the
// verdict names the job's own.
struct CauseText {
  Cause cause = Cause::kException;
  std::string_view name;
  std::string_view meaning;
  std::string_view next;
  std::string_view anchor;  // In docs/reference/verdicts.md.
};

std::span<const CauseText> cause_texts();
const CauseText& text_of(Cause cause);

// Size of /dev/shm; 0: unknown.
struct SharedMemorySize {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;
};
SharedMemorySize shared_memory_size();

struct FailedJob {
  std::span<const Failure> failures;    // At least one.
  std::span<const RankSnapshot> ranks;  // At the first failure.
  double timeout_seconds = 0;
  // The kernel killed processes of the job's control group for lack of memory.
  bool has_memory_kills = false;
  SharedMemorySize shared_memory = {};
  // What replaces the words of CauseText::next; empty: not known.
  std::string command = {};     // "train tiny --epochs 3"
  std::string run_folder = {};  // "runs/tiny"
};

struct Verdict {
  Cause cause = Cause::kException;
  std::string evidence;
  std::string next;
};

Verdict find_verdict(const FailedJob& job);

// For an error that ended a job before its ranks could fail: a value for those
// classes that concern the machine, such as a taken port.
std::optional<Verdict> verdict_of_message(std::string_view message);

// "Verdict: port\n  shown by: ...\n  meaning : ...\n  next    : ...\n"
std::string verdict_text(const Verdict& verdict);

// The words as a shell takes them: "train tiny --title 'a b'".
std::string command_text(std::span<const std::string> words);

// One object of JSON, for `lockstep board`.
std::string verdict_json(const Verdict& verdict);

}  // namespace lockstep::launch
