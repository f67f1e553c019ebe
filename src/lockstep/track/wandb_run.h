// The folder of a Weights & Biases run, and how the run is found again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::track {

struct WandbRun {
  std::string id = {};
  // "<parent>/wandb/offline-run-<date>_<time>-<id>", absolute.
  std::filesystem::path folder = {};

  std::filesystem::path log() const;    // The records.
  std::filesystem::path files() const;  // Images and texts.
  // The record of the step that may still grow.
  std::filesystem::path open_step() const;
};

// 8 letters and digits.
std::string new_wandb_run_id();

// Makes the folders of a new run and points "latest-run" to it. Throws IoError.
WandbRun make_wandb_run(const std::filesystem::path& parent,
                        const std::string& id, double unix_time);

// Points "latest-run" beside the run's folder to it, where links can be made.
void point_latest_to(const WandbRun& run);

// Runs are remembered in a small file of JSON, which also knows its own place.
// When it was moved together with the run's folder, that is found at its new
// place. No value without a readable file.
std::optional<WandbRun> remembered_wandb_run(
    const std::filesystem::path& state_file);
// The file is a copy of one that still remembers the run: the run belongs to
// another folder.
bool is_copied_wandb_state(const std::filesystem::path& state_file);
// Throws IoError.
void remember_wandb_run(const std::filesystem::path& state_file,
                        const WandbRun& run);

// The whole run is sent again by the next `wandb sync`, not only its new part.
void forget_wandb_sync(const WandbRun& run);

// The command that sends the run to a server, as it can be typed.
std::string wandb_sync_command(const std::filesystem::path& run_folder);

}  // namespace lockstep::track
