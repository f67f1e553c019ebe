#include "lockstep/launch/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/base/printable.h"
#include "lockstep/base/signals.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

constexpr size_t kMostEvidenceBytes = 240;
constexpr int64_t kSmallSharedMemory = int64_t{1} << 30;
constexpr std::string_view kPage = "docs/reference/verdicts.md#";

struct Phrase {
  std::string_view text;
  Cause cause;
};

// The first match wins: the more specific ones come first.
constexpr std::array kPhrases = {
    Phrase{"can't allocate memory", Cause::kHostMemory},
    Phrase{"bad_alloc", Cause::kHostMemory},
    Phrase{"MemoryError", Cause::kHostMemory},
    Phrase{"Cannot allocate memory", Cause::kHostMemory},
    Phrase{"CUDA out of memory", Cause::kGpuMemory},
    Phrase{"CUDA error: out of memory", Cause::kGpuMemory},
    Phrase{"the GPU's memory is full", Cause::kGpuMemory},
    Phrase{"torch.OutOfMemoryError", Cause::kGpuMemory},
    Phrase{"/dev/shm", Cause::kSharedMemory},
    Phrase{"out of shared memory", Cause::kSharedMemory},
    Phrase{"shared memory object", Cause::kSharedMemory},
    Phrase{"No space left on device", Cause::kDiskFull},
    Phrase{"Disk quota exceeded", Cause::kDiskFull},
    Phrase{"File too large (errno 27)", Cause::kDiskFull},
    Phrase{"Address already in use", Cause::kPort},
    Phrase{"EADDRINUSE", Cause::kPort},
    Phrase{"(master port) is taken", Cause::kPort},
    Phrase{"no network interface", Cause::kInterface},
    Phrase{"network interface does not exist", Cause::kInterface},
    Phrase{"no socket interface found", Cause::kInterface},
    Phrase{"cannot resolve MASTER_ADDR", Cause::kInterface},
    Phrase{"no route from this host", Cause::kInterface},
    Phrase{"master address '", Cause::kInterface},
    Phrase{"every rank must call the same collectives", Cause::kDesync},
    Phrase{"Detected mismatch between collectives", Cause::kDesync},
    Phrase{"gradient was NaN or infinite", Cause::kNan},
    Phrase{"oss is nan", Cause::kNan},
    Phrase{"oss is NaN", Cause::kNan},
    Phrase{"returned nan values in its", Cause::kNan},
};

std::optional<Cause> find_phrase(std::string_view text) {
  for (const Phrase& phrase : kPhrases) {
    if (text.find(phrase.text) != std::string_view::npos) return phrase.cause;
  }
  return std::nullopt;
}

// An out-of-memory error of the trainer names the device it ran on.
std::optional<Cause> find_trainer_phrase(std::string_view text) {
  if (text.find("out of memory on rank ") == std::string_view::npos) {
    return std::nullopt;
  }
  return text.find(", cpu) at ") != std::string_view::npos ? Cause::kHostMemory
                                                           : Cause::kGpuMemory;
}

// What the worker said of its end, the most telling line first.
std::vector<std::string> lines_of(const Failure& failure) {
  std::vector<std::string> lines;
  if (failure.error) {
    lines = base::split(failure.error->message, '\n');
    // The last line of a Python traceback names the error.
    const auto stack = base::split(failure.error->callstack, '\n');
    lines.insert(lines.end(), stack.rbegin(), stack.rend());
  } else {
    lines.assign(failure.last_lines.rbegin(), failure.last_lines.rend());
  }
  std::erase_if(
      lines, [](const std::string& line) { return base::trim(line).empty(); });
  return lines;
}

std::string quoted(const Failure& failure, std::string_view line) {
  return fmt::format(
      "rank {}: {}", failure.rank,
      base::printable_line(base::trim(line), kMostEvidenceBytes));
}

struct Finding {
  Cause cause = Cause::kException;
  std::string evidence;
};

std::optional<Finding> find_in_words(const Failure& failure) {
  const std::vector<std::string> lines = lines_of(failure);
  for (const std::string& line : lines) {
    auto cause = find_trainer_phrase(line);
    if (!cause) cause = find_phrase(line);
    if (cause) return Finding{*cause, quoted(failure, line)};
  }
  return std::nullopt;
}

bool is_leaver(const Failure& failure) {
  return failure.exit_code == 0 && failure.error.has_value();
}

std::string signal_evidence(const Failure& failure) {
  const int signal = -failure.exit_code;
  std::string text = fmt::format("rank {} (pid {}) died by {}", failure.rank,
                                 failure.pid, base::signal_name(signal));
  const std::string meaning =
      failure.meaning.empty() ? base::signal_meaning(signal) : failure.meaning;
  return meaning.empty() ? text : text + ": " + meaning;
}

bool is_memory_kill(const Failure& failure) {
  return failure.meaning.starts_with(
      "killed by the kernel's out-of-memory killer");
}

bool is_scarce(const SharedMemorySize& size) {
  return size.total_bytes > 0 && (size.total_bytes < kSmallSharedMemory ||
                                  size.free_bytes < size.total_bytes / 20);
}

Finding judge_signal(const Failure& failure, const FailedJob& job) {
  if (is_memory_kill(failure)) {
    return {Cause::kHostMemory, signal_evidence(failure)};
  }
  if (failure.exit_code == -SIGBUS && is_scarce(job.shared_memory)) {
    return {Cause::kSharedMemory,
            fmt::format("rank {} (pid {}) died by SIGBUS, and /dev/shm has {}, "
                        "{} free",
                        failure.rank, failure.pid,
                        base::bytes_text(job.shared_memory.total_bytes),
                        base::bytes_text(job.shared_memory.free_bytes))};
  }
  // An abort has said why: an uncaught exception, a library's check.
  if (failure.exit_code == -SIGABRT) {
    if (auto finding = find_in_words(failure)) return *std::move(finding);
  }
  return {Cause::kSignal, signal_evidence(failure)};
}

std::string rank_evidence(const RankSnapshot& rank) {
  return std::string(base::trim(stalling_line(rank, "it waited for")));
}

// Both wait in collectives, but not in the same one.
const RankSnapshot* find_desynchronised(std::span<const RankSnapshot> ranks) {
  for (const RankSnapshot& rank : ranks) {
    if (!rank.has_waited() || rank.is_stopped()) return nullptr;
  }
  for (const RankSnapshot& rank : ranks) {
    const base::RankStatus& own = *rank.status;
    const base::RankStatus& other = *ranks.front().status;
    if (own.collective != other.collective ||
        own.collective_bytes != other.collective_bytes ||
        own.collectives_started != other.collectives_started) {
      return &rank;
    }
  }
  return nullptr;
}

bool has_left_its_loop(const RankSnapshot& rank) {
  return rank.status && (rank.status->phase == base::Phase::kClosing ||
                         rank.status->phase == base::Phase::kDone);
}

// The ranks that others wait for: stopped, or behind in collectives.
std::vector<const RankSnapshot*> find_late(
    std::span<const RankSnapshot> ranks) {
  int64_t most = -1;
  for (const RankSnapshot& rank : ranks) {
    if (rank.status) most = std::max(most, rank.status->collectives_started);
  }
  std::vector<const RankSnapshot*> late;
  for (const RankSnapshot& rank : ranks) {
    const bool is_behind =
        rank.status && rank.status->collectives_started < most;
    const bool is_idle = rank.is_alive && rank.status && !rank.has_waited();
    if (rank.is_stopped() || is_behind || is_idle) late.push_back(&rank);
  }
  return late;
}

Finding judge_timeout(const Failure& root, const FailedJob& job) {
  const auto late = find_late(job.ranks);
  for (const RankSnapshot* rank : late) {
    if (has_left_its_loop(*rank)) {
      return {Cause::kUnequalBatches, rank_evidence(*rank)};
    }
  }
  if (const RankSnapshot* other = find_desynchronised(job.ranks)) {
    return {Cause::kDesync, rank_evidence(*other)};
  }
  for (const RankSnapshot* rank : late) {
    if (!rank->is_stopped() && rank->status &&
        rank->status->phase == base::Phase::kLoadingData) {
      return {Cause::kDataStarvation, rank_evidence(*rank)};
    }
  }
  if (!late.empty()) return {Cause::kStall, rank_evidence(*late.front())};
  const auto lines = lines_of(root);
  return {Cause::kStall, lines.empty()
                             ? fmt::format("rank {} gave up waiting", root.rank)
                             : quoted(root, lines.front())};
}

Finding judge(const FailedJob& job) {
  const Failure& root = job.failures[find_root_cause(job.failures)];
  if (is_leaver(root)) {
    return {Cause::kUnequalBatches, quoted(root, root.error->message)};
  }
  // A rank that only lost a peer may have lost it to the kernel.
  if (is_consequence(root) && job.has_memory_kills) {
    return {Cause::kHostMemory,
            "the kernel's out-of-memory killer ended a process of this control "
            "group while the job ran"};
  }
  if (is_timeout(root, job.ranks, job.timeout_seconds)) {
    return judge_timeout(root, job);
  }
  if (root.exit_code < 0 && !root.error) return judge_signal(root, job);
  if (auto finding = find_in_words(root)) return *std::move(finding);
  const auto lines = lines_of(root);
  return {Cause::kException,
          lines.empty() ? fmt::format("rank {} (pid {}) ended with exit code "
                                      "{} and wrote no error file",
                                      root.rank, root.pid, root.exit_code)
                        : quoted(root, lines.front())};
}

std::string next_command(const CauseText& text, const FailedJob& job) {
  const Failure& root = job.failures[find_root_cause(job.failures)];
  if (text.cause == Cause::kException && !root.error) {
    return "lockstep run --log-dir logs --tee 3 ...";
  }
  std::string next(text.next);
  next = base::replace_all(next, "ERROR_FILE", root.error_file);
  next = base::replace_all(next, "RUN",
                           job.run_folder.empty() ? "." : job.run_folder);
  next = base::replace_all(next, "JOB", job.command);
  return std::string(base::trim(next));
}

}  // namespace

Verdict find_verdict(const FailedJob& job) {
  Finding finding = judge(job);
  return {.cause = finding.cause,
          .evidence = std::move(finding.evidence),
          .next = next_command(text_of(finding.cause), job)};
}

std::optional<Verdict> verdict_of_message(std::string_view message) {
  const auto cause = find_phrase(message);
  if (cause != Cause::kPort && cause != Cause::kInterface) return std::nullopt;
  return Verdict{.cause = *cause,
                 .evidence = base::printable_line(message, kMostEvidenceBytes),
                 .next = std::string(text_of(*cause).next)};
}

std::string verdict_text(const Verdict& verdict) {
  const CauseText& text = text_of(verdict.cause);
  return fmt::format(
      "Verdict: {}\n"
      "  shown by: {}\n"
      "  meaning : {}\n"
      "  next    : {}\n"
      "  see     : {}{}\n",
      text.name, verdict.evidence, text.meaning, verdict.next, kPage,
      text.anchor);
}

std::string command_text(std::span<const std::string> words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "-_=./:,+@%";
  std::vector<std::string> quoted_words;
  for (const std::string& word : words) {
    const bool is_plain =
        !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    quoted_words.push_back(
        is_plain ? word : "'" + base::replace_all(word, "'", "'\\''") + "'");
  }
  return base::join(quoted_words, " ");
}

std::string verdict_json(const Verdict& verdict) {
  const CauseText& text = text_of(verdict.cause);
  const nlohmann::ordered_json object = {
      {"cause", text.name},
      {"evidence", verdict.evidence},
      {"meaning", text.meaning},
      {"next", verdict.next},
      {"see", std::string(kPage) + std::string(text.anchor)}};
  return object.dump(-1, ' ', false,
                     nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace lockstep::launch
