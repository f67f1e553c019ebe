#include "lockstep/launch/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/processes.h"

namespace lockstep::launch {
namespace {

bool mentions_any(std::string_view text,
                  std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

// Phrases in errors of collectives; programs and warnings mention timeouts too.
bool mentions_timeout(std::string_view text) {
  constexpr std::array<std::string_view, 5> kWords = {
      "TimeoutError", "timed out", "Timed out", "collective operation timeout",
      "wait timeout"};
  return mentions_any(text, kWords);
}

// "rank 1 (pid 7)"
std::string name_of(const RankSnapshot& rank) {
  return fmt::format("rank {} (pid {}){}{}", rank.rank, rank.pid,
                     rank.place.empty() ? "" : " on ", rank.place);
}

std::string waiting_line(const RankSnapshot& rank) {
  const base::RankStatus& status = *rank.status;
  return fmt::format(
      "  waiting: {} in {} for {}{}\n", name_of(rank), collective_text(status),
      base::duration_text(status.collective_seconds), step_text(status));
}

std::string what_it_did(const RankSnapshot& rank) {
  if (!rank.status) {
    std::string text = rank.is_alive ? "process is " + state_name(rank.state)
                                     : "process ended";
    if (rank.quiet_seconds) {
      text += fmt::format(", no output for {}",
                          base::duration_text(*rank.quiet_seconds));
    }
    return text;
  }
  const base::RankStatus& status = *rank.status;
  return fmt::format("last collective: {}, phase: {}{}, silent for {}",
                     collective_text(status), base::phase_name(status.phase),
                     step_text(status),
                     base::duration_text(status.silent_seconds));
}

bool has_pages(std::span<const RankSnapshot> ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const RankSnapshot& rank) {
    return rank.status.has_value();
  });
}

// The ranks behind the others: stopped, never attached, or with the fewest
// collectives when the counts differ.
std::vector<const RankSnapshot*> find_stalling(
    std::span<const RankSnapshot> ranks) {
  std::vector<const RankSnapshot*> found;
  int64_t fewest = INT64_MAX;
  int64_t most = -1;
  for (const RankSnapshot& rank : ranks) {
    if (!rank.status) continue;
    fewest = std::min(fewest, rank.status->collectives_started);
    most = std::max(most, rank.status->collectives_started);
  }
  for (const RankSnapshot& rank : ranks) {
    const bool is_behind =
        rank.status
            ? rank.status->collectives_started == fewest && fewest < most
            : rank.is_alive && most >= 0;
    if (rank.is_stopped() || is_behind) found.push_back(&rank);
  }
  return found;
}

// All started the same number of collectives: were they the same ones?
std::string nobody_behind_text(std::span<const RankSnapshot> ranks) {
  const base::RankStatus* first = nullptr;
  for (const RankSnapshot& rank : ranks) {
    if (!rank.status) continue;
    if (first == nullptr) first = &*rank.status;
    if (rank.status->collective != first->collective ||
        rank.status->collective_bytes != first->collective_bytes) {
      return "  the ranks called different collectives: look for code, "
             "settings "
             "or data that differ between them\n";
    }
  }
  return "  no rank is behind: all started the same collectives; suspect the "
         "network or a GPU\n";
}

std::string lockstep_ranks_text(std::span<const RankSnapshot> ranks) {
  const auto stalling = find_stalling(ranks);
  std::string text;
  for (const RankSnapshot& rank : ranks) {
    const bool is_stalling =
        std::find(stalling.begin(), stalling.end(), &rank) != stalling.end();
    if (!is_stalling && rank.has_waited()) text += waiting_line(rank);
  }
  for (const RankSnapshot* rank : stalling) {
    text += stalling_line(*rank, "stalled");
  }
  if (stalling.empty()) text += nobody_behind_text(ranks);
  return text;
}

std::string foreign_ranks_text(std::span<const RankSnapshot> ranks,
                               const Failure& failure) {
  std::string text = fmt::format("  rank {} (pid {}) gave up waiting\n",
                                 failure.rank, failure.pid);
  for (const RankSnapshot& rank : ranks) {
    if (!rank.is_alive) continue;
    text += stalling_line(rank, rank.is_stopped() ? "stalled" : "alive");
  }
  return text;
}

Failure leaver_failure(const RankSnapshot& rank) {
  std::string text = fmt::format(
      "rank {} exited with 0 while other ranks still needed it", rank.rank);
  if (rank.status) {
    text += fmt::format(" (phase {}{}, last collective: {})",
                        base::phase_name(rank.status->phase),
                        step_text(*rank.status), collective_text(*rank.status));
  }
  text +=
      "; all ranks must run the same number of steps and end together: look "
      "for a shorter loop, a return or an exit on this rank";
  return {
      .rank = rank.rank,
      .local_rank = rank.local_rank,
      .place = rank.place,
      .pid = rank.pid,
      .exit_code = 0,
      .unix_time = rank.ended_at,
      .error_file = "<N/A>",
      .error = base::ErrorReport{.message = std::move(text), .callstack = ""},
      .last_lines = {}};
}

}  // namespace

std::string collective_text(const base::RankStatus& status) {
  if (status.collectives_started == 0) return "no collective yet";
  std::string text =
      fmt::format("{} #{}", base::collective_name(status.collective),
                  status.collectives_started);
  if (status.collective_bytes > 0) {
    text += fmt::format(" ({})", base::bytes_text(status.collective_bytes));
  }
  return text;
}

std::string step_text(const base::RankStatus& status) {
  return status.step < 0 ? "" : fmt::format(", step {}", status.step);
}

std::string stopped_text(const RankSnapshot& rank) {
  if (rank.state == 't') {
    return fmt::format("is stopped by a debugger; continue it there");
  }
  return fmt::format("is stopped (SIGSTOP); resume it with kill -CONT {}",
                     rank.pid);
}

std::string stalling_line(const RankSnapshot& rank, const char* title) {
  std::string text = fmt::format("  {}: {}", title, name_of(rank));
  if (rank.is_stopped()) text += " " + stopped_text(rank);
  text += "; " + what_it_did(rank);
  if (rank.status && !rank.is_stopped() && !rank.waiting.empty()) {
    text += ", process is " + rank.waiting;
  }
  return text + "\n";
}

std::string limit_line(std::span<const RankSnapshot> ranks,
                       double timeout_seconds) {
  return fmt::format(
      "  The limit is {}{}; --timeout SECONDS, NCCL_TIMEOUT or "
      "TORCH_DISTRIBUTED_TIMEOUT set it.\n",
      base::duration_text(ranks.empty()
                              ? timeout_seconds
                              : timeout_of(ranks.front(), timeout_seconds)),
      has_pages(ranks) ? "" : " unless the program sets its own");
}

bool RankSnapshot::is_in_collective() const {
  return status && status->collectives_started > status->collectives_finished;
}

bool RankSnapshot::has_waited() const {
  return is_in_collective() || (status && status->last_collective_failed);
}

double timeout_of(const RankSnapshot& rank, double timeout_seconds) {
  if (!rank.status || rank.status->timeout_seconds <= 0) return timeout_seconds;
  return rank.status->timeout_seconds;
}

bool is_timeout(const Failure& failure, std::span<const RankSnapshot> ranks,
                double timeout_seconds) {
  const auto failed = std::find_if(
      ranks.begin(), ranks.end(),
      [&](const RankSnapshot& rank) { return rank.rank == failure.rank; });
  // In a foreign program the code means something else.
  const bool is_ours =
      failure.error || (failed != ranks.end() && failed->status);
  if (is_ours && failure.exit_code == kTimeoutExitCode) return true;
  if (failure.error) return mentions_timeout(failure.error->message);
  if (std::any_of(failure.last_lines.begin(), failure.last_lines.end(),
                  mentions_timeout)) {
    return true;
  }
  if (failure.exit_code != -SIGABRT) return false;
  return std::any_of(
      ranks.begin(), ranks.end(), [timeout_seconds](const RankSnapshot& rank) {
        return rank.has_waited() && rank.status->collective_seconds >
                                        0.9 * timeout_of(rank, timeout_seconds);
      });
}

std::string timeout_verdict(std::span<const RankSnapshot> ranks,
                            const Failure& failure, double timeout_seconds) {
  std::string text = "Timeout: who waited and who kept the others waiting\n";
  text += has_pages(ranks) ? lockstep_ranks_text(ranks)
                           : foreign_ranks_text(ranks, failure);
  return text + limit_line(ranks, timeout_seconds);
}

std::optional<Failure> find_leaver(std::span<const RankSnapshot> ranks,
                                   std::span<const Failure> failures,
                                   double timeout_seconds) {
  if (failures.empty()) return std::nullopt;
  const Failure& root = failures[find_root_cause(failures)];
  const bool is_late = is_timeout(root, ranks, timeout_seconds);
  if (!is_consequence(root) && !is_late) return std::nullopt;
  int64_t most = -1;
  for (const RankSnapshot& rank : ranks) {
    if (rank.status) most = std::max(most, rank.status->collectives_started);
  }
  const RankSnapshot* leaver = nullptr;
  for (const RankSnapshot& rank : ranks) {
    if (rank.is_alive || rank.exit_code != 0) continue;
    // Others may wait for a third one.
    const bool is_behind =
        !rank.status || rank.status->collectives_started < most;
    if (is_late && !is_behind) continue;
    if (leaver == nullptr || rank.ended_at < leaver->ended_at) leaver = &rank;
  }
  if (leaver == nullptr) return std::nullopt;
  return leaver_failure(*leaver);
}

std::string early_exits(std::span<const RankSnapshot> ranks) {
  std::string text;
  for (const RankSnapshot& rank : ranks) {
    if (rank.is_alive || rank.exit_code != 0) continue;
    text += fmt::format("  {} had already exited with 0\n", name_of(rank));
  }
  return text;
}

}  // namespace lockstep::launch
