#include "lockstep/track/wandb_resume.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/track/wandb.pb.h"

namespace lockstep::track {
namespace {

constexpr std::string_view kStepKey = "_step";
constexpr std::string_view kRuntimeKey = "_runtime";
constexpr std::string_view kTimestampKey = "_timestamp";

WandbStep step_of(const wandb::History& history) {
  WandbStep step;
  step.num = history.step().num();
  for (const auto& message : history.item()) {
    WandbItem item;
    item.key.assign(message.nested_key().begin(), message.nested_key().end());
    item.json = message.value_json();
    if (item.key.empty()) continue;
    if (item.key[0] == kRuntimeKey) {
      step.runtime_seconds = base::parse_number(item.json).value_or(0);
    } else if (item.key[0] == kTimestampKey) {
      step.unix_time = base::parse_number(item.json).value_or(0);
    } else if (item.key[0] != kStepKey) {
      step.items.push_back(std::move(item));
    }
  }
  return step;
}

// A value that was given stays what it was when the command gives none now.
void update_run(wandb::Run& run, const WandbConfig& config) {
  wandb::Record fresh;
  fresh.ParseFromString(run_record(0, run.run_id(), config, 0));
  fresh.mutable_run()->clear_start_time();
  if (!config.project) fresh.mutable_run()->clear_project();
  run.clear_config();
  if (config.tags) run.clear_tags();
  run.MergeFrom(fresh.run());
}

class Keeper {
 public:
  Keeper(const KeptRecords& kept, const WandbConfig& config)
      : kept_(kept), config_(config) {}

  void take(wandb::Record& record) {
    switch (record.kind_case()) {
      case wandb::Record::kFiles:
      case wandb::Record::kSummary:
        // They belong to the history record behind them.
        waiting_.push_back(std::move(record));
        break;
      case wandb::Record::kHistory: take_history(record); break;
      case wandb::Record::kExit:
      case wandb::Record::kFinal:
      case wandb::Record::kFooter: break;
      case wandb::Record::kRun:
        has_run_ = true;
        part_.start_time =
            static_cast<double>(record.run().start_time().seconds()) +
            record.run().start_time().nanos() * 1e-9;
        update_run(*record.mutable_run(), config_);
        keep(record);
        break;
      default: keep(record);
    }
  }

  std::optional<WandbEarlierPart> part() {
    if (!has_run_) return std::nullopt;
    if (part_.open_step) {
      part_.runtime_seconds =
          std::max(part_.runtime_seconds, part_.open_step->runtime_seconds);
    }
    return std::move(part_);
  }

 private:
  void keep(wandb::Record& record) {
    record.set_num(static_cast<int64_t>(part_.records.size()) + 1);
    part_.records.push_back(record.SerializeAsString());
  }

  void drop_media(const std::vector<WandbItem>& items) {
    for (auto& path : media_of(items)) {
      part_.dropped_media.push_back(std::move(path));
    }
  }

  void take_history(wandb::Record& record) {
    WandbStep step = step_of(record.history());
    // A run that was killed while a step was written may hold it twice: in the
    // log and as the open one.
    if (last_num_ && step.num <= *last_num_) return;
    last_num_ = step.num;
    if (step.num < kept_.last_step) {
      part_.runtime_seconds =
          std::max(part_.runtime_seconds, step.runtime_seconds);
      for (auto& earlier : waiting_) keep(earlier);
      keep(record);
    } else if (step.num == kept_.last_step) {
      reopen(std::move(step));
    } else {
      drop_media(step.items);
    }
    waiting_.clear();
  }

  void reopen(WandbStep step) {
    const auto is_redone = [this](const WandbItem& item) {
      return !kept_.redone.empty() && item.key[0].starts_with(kept_.redone);
    };
    std::vector<WandbItem> redone;
    std::copy_if(step.items.begin(), step.items.end(),
                 std::back_inserter(redone), is_redone);
    drop_media(redone);
    std::erase_if(step.items, is_redone);
    if (!step.items.empty()) part_.open_step = std::move(step);
  }

  const KeptRecords& kept_;
  const WandbConfig& config_;
  WandbEarlierPart part_;
  std::vector<wandb::Record> waiting_;
  std::optional<int64_t> last_num_;
  bool has_run_ = false;
};

}  // namespace

std::vector<WandbItem> recorded_items(const WandbStep& step) {
  std::vector<WandbItem> items = step.items;
  items.push_back({{std::string(kStepKey)}, std::to_string(step.num)});
  items.push_back(
      {{std::string(kRuntimeKey)}, wandb_json(step.runtime_seconds)});
  items.push_back({{std::string(kTimestampKey)}, wandb_json(step.unix_time)});
  return items;
}

std::vector<std::string> media_of(std::span<const WandbItem> items) {
  std::vector<std::string> paths;
  for (const auto& item : items) {
    if (item.key.size() != 2 || item.key[1] != "path") continue;
    const nlohmann::json path =
        nlohmann::json::parse(item.json, nullptr, false);
    if (path.is_string()) paths.push_back(path);
  }
  return paths;
}

std::optional<WandbEarlierPart> keep_wandb_records(
    std::span<const std::string> records, const KeptRecords& kept,
    const WandbConfig& config) {
  Keeper keeper(kept, config);
  for (const std::string& bytes : records) {
    wandb::Record record;
    if (record.ParseFromString(bytes)) keeper.take(record);
  }
  return keeper.part();
}

}  // namespace lockstep::track
