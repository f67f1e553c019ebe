// The checkpoints of a folder: which is the newest sound one, which may go.
//
// Their order is that of the step stored inside them, not of file times, which
// copying changes, nor of names. Leftovers of killed writers are removed by
// remove_leftovers() (base/atomic_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/atomic_file.h"
#include "lockstep/checkpoint.h"

namespace lockstep::checkpoint {

struct CheckpointQuery {
  std::filesystem::path folder = ".";
  // Shell patterns of file names, for example "step-*.pt", or with digits alone
  // "step-+([0-9]).pt".
  std::vector<std::string> patterns = {"*.pt"};
  // Key of the step in a file: "step", or "progress.step" inside a dict.
  std::string step_key = "step";
};

struct CheckpointFile {
  std::filesystem::path path;
  int64_t step = 0;
};

// Called for every file that matches a pattern but is not a usable checkpoint.
using OnSkipped = std::function<void(const std::filesystem::path& path,
                                     const std::string& reason)>;

// Newest first; equal steps by name. Reads only structure and step of each
// file. A folder that does not exist is empty.
std::vector<CheckpointFile> list_checkpoints(const CheckpointQuery& query,
                                             const OnSkipped& on_skipped = {});

struct LoadedCheckpoint {
  CheckpointFile file = {};
  Tree tree = {};
};

// The newest file that is sound throughout. Loading it tests every checksum, so
// it is read once.
std::optional<LoadedCheckpoint> load_latest(const CheckpointQuery& query,
                                            const OnSkipped& on_skipped = {});

struct Retention {
  size_t keep_last = 3;
  // Names of files that stay whatever their age.
  std::vector<std::string> keep = {};
  // A file that was just written: when it is the newest, it is not read again.
  std::filesystem::path known_sound = {};
};

// Removes all checkpoints but those of `retention` and the newest sound one;
// returns what it removed. Files that are not usable checkpoints stay. Throws
// IoError when a file cannot be removed.
std::vector<std::filesystem::path> remove_old(const CheckpointQuery& query,
                                              const Retention& retention);

}  // namespace lockstep::checkpoint
