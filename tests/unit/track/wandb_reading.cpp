#include "wandb_reading.h"

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/track/wandb_log.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

template <typename Items>
void take_items(const Items& items, HistoryRow& row) {
  for (const auto& item : items) {
    const std::vector<std::string> key(item.nested_key().begin(),
                                       item.nested_key().end());
    row[base::join(key, ".")] = item.value_json();
  }
}

std::string kind_of(const wandb::Record& record) {
  switch (record.kind_case()) {
    case wandb::Record::kHistory: return "history";
    case wandb::Record::kSummary: return "summary";
    case wandb::Record::kFiles: return "files";
    case wandb::Record::kStats: return "stats";
    case wandb::Record::kOutput: return "output";
    case wandb::Record::kRun: return "run";
    case wandb::Record::kExit: return "exit";
    case wandb::Record::kFinal: return "final";
    case wandb::Record::kHeader: return "header";
    case wandb::Record::kFooter: return "footer";
    case wandb::Record::kEnvironment: return "environment";
    case wandb::Record::KIND_NOT_SET: break;
  }
  return "none";
}

}  // namespace

std::vector<wandb::Record> records_of(const fs::path& run_folder) {
  fs::path log;
  for (const auto& entry : fs::directory_iterator(run_folder)) {
    if (entry.path().extension() == ".wandb") log = entry.path();
  }
  std::vector<wandb::Record> records;
  for (const std::string& bytes : track::read_wandb_log(log)) {
    wandb::Record record;
    EXPECT_TRUE(record.ParseFromString(bytes));
    records.push_back(record);
    EXPECT_EQ(record.num(), static_cast<int64_t>(records.size()));
  }
  return records;
}

std::vector<std::string> kinds_of(const std::vector<wandb::Record>& records) {
  std::vector<std::string> kinds;
  for (const auto& record : records) kinds.push_back(kind_of(record));
  return kinds;
}

std::vector<HistoryRow> history_of(const std::vector<wandb::Record>& records) {
  std::vector<HistoryRow> rows;
  for (const auto& record : records) {
    if (!record.has_history()) continue;
    HistoryRow row;
    take_items(record.history().item(), row);
    EXPECT_EQ(row.at("_step"), std::to_string(record.history().step().num()));
    row.erase("_timestamp");
    rows.push_back(row);
  }
  return rows;
}

HistoryRow summary_of(const std::vector<wandb::Record>& records) {
  HistoryRow row;
  for (const auto& record : records) {
    if (record.has_summary()) take_items(record.summary().update(), row);
  }
  row.erase("_timestamp");
  return row;
}

}  // namespace lockstep::testing
