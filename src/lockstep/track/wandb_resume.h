// Trims the records of a Weights & Biases run that is resumed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/track/wandb_records.h"

namespace lockstep::track {

// Values of a step that may still grow.
struct WandbStep {
  int64_t num = 0;
  double unix_time = 0;        // When the last values came.
  double runtime_seconds = 0;  // Since the run began, without its pauses.
  std::vector<WandbItem> items = {};
};

// The items of a step as they stand in a record: with "_step", "_runtime" and
// "_timestamp".
std::vector<WandbItem> recorded_items(const WandbStep& step);

// The files of a step, relative to the folder "files".
std::vector<std::string> media_of(std::span<const WandbItem> items);

struct WandbEarlierPart {
  std::vector<std::string> records = {};  // Numbered anew from 1.
  std::optional<WandbStep> open_step = {};
  std::vector<std::string> dropped_media = {};
  double start_time = 0;
  double runtime_seconds = 0;
};

// Drops later steps, the end of the run and what is redone according to `kept`;
// the last kept step is open again. The run's own record gets the config and
// the names that `config` has. No value when the records do not describe a run.
// A record that cannot be read is dropped.
std::optional<WandbEarlierPart> keep_wandb_records(
    std::span<const std::string> records, const KeptRecords& kept,
    const WandbConfig& config);

}  // namespace lockstep::track
