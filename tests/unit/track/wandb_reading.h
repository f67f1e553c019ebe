// Records of a Weights & Biases run, read back.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lockstep/track/wandb.pb.h"

namespace lockstep::testing {

// The records of the only .wandb file of a run folder, in order. Fails the test
// when one is not a record or they are not numbered 1, 2, 3...
std::vector<wandb::Record> records_of(const std::filesystem::path& run_folder);

// "history", "run": the kind of each record.
std::vector<std::string> kinds_of(const std::vector<wandb::Record>& records);

// One record of the run per step: "train/loss" -> "0.5", "a.width" -> "3".
// Without "_timestamp".
using HistoryRow = std::map<std::string, std::string>;
std::vector<HistoryRow> history_of(const std::vector<wandb::Record>& records);

// What all summary records together say.
HistoryRow summary_of(const std::vector<wandb::Record>& records);

}  // namespace lockstep::testing
