#include "lockstep/runs/run_summary.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lockstep/base/printable.h"
#include "lockstep/base/run_note.h"
#include "lockstep/base/strings.h"
#include "lockstep/runs/run_files.h"

namespace lockstep::runs {
namespace {

constexpr size_t kMostRunFileBytes = size_t{64} << 10;
constexpr std::string_view kRecipeMark = "# recipe: ";

// A run of another machine on a shared disk counts as running for so long.
constexpr int64_t kRemoteSilenceSeconds = 180;

std::string recipe_in(const std::string& config) {
  for (const std::string& line : base::split(config, '\n')) {
    if (!line.starts_with('#')) break;
    if (line.starts_with(kRecipeMark)) return line.substr(kRecipeMark.size());
  }
  return "";
}

bool is_this_host(const std::string& host) {
  std::array<char, 256> own{};
  gethostname(own.data(), own.size() - 1);
  return host == own.data();
}

bool is_stop_code(int code) {
  return code == 128 + SIGHUP || code == 128 + SIGINT || code == 128 + SIGTERM;
}

std::string reason_of(RunState state,
                      const std::optional<track::RunInfo>& info) {
  if (info && info->end) return info->end->last_line;
  if (state == RunState::kFailed) {
    return "it ended without a record: killed, or another rank failed";
  }
  return "";
}

}  // namespace

std::string state_name(RunState state) {
  switch (state) {
    case RunState::kRunning: return "running";
    case RunState::kFinished: return "finished";
    case RunState::kStopped: return "stopped";
    case RunState::kFailed: return "failed";
    case RunState::kUnknown: return "unknown";
  }
  return "unknown";
}

// The end is written before the lock goes: it counts first.
RunState state_of(const std::optional<track::RunInfo>& info,
                  const StateFacts& facts) {
  if (info && info->end) {
    if (info->end->exit_code == 0) return RunState::kFinished;
    return is_stop_code(info->end->exit_code) ? RunState::kStopped
                                              : RunState::kFailed;
  }
  if (facts.is_locked) return RunState::kRunning;
  if (!info) return RunState::kUnknown;
  const bool may_run = !facts.is_this_host &&
                       facts.now - facts.last_sign < kRemoteSilenceSeconds;
  return may_run ? RunState::kRunning : RunState::kFailed;
}

bool RunSummary::operator==(const RunSummary& other) const {
  const auto same_best = [](const auto& a, const auto& b) {
    return a.has_value() == b.has_value() &&
           (!a || (a->step == b->step && a->value == b->value));
  };
  return id == other.id && state == other.state && reason == other.reason &&
         verdict == other.verdict && step == other.step && loss == other.loss &&
         same_best(best, other.best) &&
         samples_per_second == other.samples_per_second &&
         last_sign == other.last_sign && info.started == other.info.started &&
         info.pid == other.info.pid && info.recipe == other.info.recipe;
}

RunVerdict parse_verdict(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return {};
  const auto value = [&](const char* name) -> std::string {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_string()) return "";
    return base::printable_line(found->get<std::string>());
  };
  return {.cause = value("cause"),
          .evidence = value("evidence"),
          .meaning = value("meaning"),
          .next = value("next"),
          .see = value("see")};
}

RunWatcher::RunWatcher(std::string id) : id_(std::move(id)), values_(id_) {}

RunSummary RunWatcher::update(const FolderTree& tree, const LockTable& locks,
                              int64_t now) {
  const auto text =
      tree.read(joined_path(id_, track::kRunFile), kMostRunFileBytes);
  const auto info = text ? track::parse_run_info(*text) : std::nullopt;
  RunSummary summary{.id = id_, .info = info.value_or(track::RunInfo{})};
  if (summary.info.recipe.empty()) {
    if (config_recipe_.empty()) {
      config_recipe_ =
          recipe_in(tree.read(joined_path(id_, kConfigFile), kMostConfigBytes)
                        .value_or(""));
    }
    summary.info.recipe = config_recipe_;
  }
  if (summary.info.log.empty()) summary.info.log = "train.log";
  values_.update(tree, summary.info.best);
  summary.step = values_.step();
  if (values_.loss()) summary.loss = values_.loss()->value;
  summary.best = values_.best();
  summary.best_name = values_.best_name();
  summary.samples_per_second = values_.samples_per_second();
  const auto log = tree.facts_of(joined_path(id_, summary.info.log));
  summary.last_sign = std::max(values_.modified(), log ? log->modified : 0);
  const auto lock = tree.facts_of(joined_path(id_, kLockFile));
  summary.state = state_of(
      info, {.is_locked = lock && locks.is_locked(*lock, summary.info.pid),
             .is_this_host = is_this_host(summary.info.host),
             .last_sign = summary.last_sign,
             .now = now});
  summary.reason = reason_of(summary.state, info);
  if (summary.state == RunState::kFailed) {
    summary.verdict = parse_verdict(
        tree.read(joined_path(id_, base::kVerdictFile), kMostRunFileBytes)
            .value_or(""));
  }
  return summary;
}

}  // namespace lockstep::runs
