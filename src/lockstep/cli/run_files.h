// The folder and the records of a training.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/files.h"
#include "lockstep/cli/command_line.h"
#include "lockstep/cli/session.h"
#include "lockstep/engine/train_state.h"
#include "lockstep/run/checkpoints.h"
#include "lockstep/run/records.h"

namespace lockstep::cli {

// Lock and records of a run, on the rank that writes.
struct OpenRun {
  base::FileDescriptor lock = {};
  std::unique_ptr<run::RunRecords> records = {};
};

// All but records_config() and kept_records() are collectives.

// Decided and reported by rank 0 alone, before anything is written.
void check_folder(const World& world, const CommandLine& line,
                  const FileNames& names);

// A run goes on when a new rank 0 takes the place of one that died: nothing in
// its folder is overwritten.
enum class FolderUse { kAsAsked, kGoOn };
void open_folder(Session& session, const CommandLine& line, FolderUse use,
                 OpenRun& run);

run::RunRecordsConfig records_config(const Session& session,
                                     const CommandLine& line);

// Rank 0 alone writes records.
void open_records(Session& session, const CommandLine& line,
                  const std::optional<track::KeptRecords>& resumed,
                  int64_t total_steps, OpenRun& run);

// What a resumed run keeps of its records; `score`: the name of its score.
track::KeptRecords kept_records(const engine::TrainState& state,
                                const std::string& score);

// Moves checkpoints newer than the resumed one aside.
void leave_newer_behind(Session& session, const run::CheckpointsConfig& files,
                        const engine::TrainState& state);

// The best model of a resumed run may have been moved aside or be in another
// folder. If it cannot be found, the next validation counts as the best.
void settle_best(Session& session, const run::CheckpointsConfig& files,
                 const std::string& resume, engine::TrainState& state);

}  // namespace lockstep::cli
