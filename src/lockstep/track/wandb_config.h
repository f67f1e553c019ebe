// Names of a Weights & Biases run, and where it is recorded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/environment.h"

namespace lockstep::track {

// Lockstep itself never sends anything. kOnline: wandb's own client sends the
// run while it is recorded (wandb_sync.h).
enum class WandbMode { kOffline, kDisabled, kOnline };

// Accepts "offline", "disabled", "online" and wandb's old word "dryrun" for the
// first. Throws ConfigError for others; `source` names where the word comes
// from.
WandbMode parse_wandb_mode(std::string_view word, std::string_view source);

// Without a value: the environment decides, then the default.
struct WandbConfig {
  std::optional<WandbMode> mode = {};        // WANDB_MODE, else offline
  std::optional<std::string> project = {};   // WANDB_PROJECT, else "lockstep"
  std::optional<std::string> name = {};      // WANDB_NAME, else the server's
  std::optional<std::string> entity = {};    // WANDB_ENTITY
  std::optional<std::string> run_id = {};    // WANDB_RUN_ID, else drawn
  std::optional<std::string> group = {};     // WANDB_RUN_GROUP
  std::optional<std::string> job_type = {};  // WANDB_JOB_TYPE
  std::optional<std::string> notes = {};     // WANDB_NOTES
  std::optional<std::vector<std::string>> tags = {};  // WANDB_TAGS: "a,b"
  // The folder in which "wandb/" is made; WANDB_DIR, else this one.
  std::optional<std::filesystem::path> folder = {};
  // The settings of the run: an object. Secrets in it are not written.
  std::string config_json = "{}";
  std::string program = {};
  std::vector<std::string> arguments = {};  // Secrets in it are not written.
  // State file by which a resumed run is found again; empty: none.
  std::filesystem::path state_file = {};
  double start_time = 0;  // Unix seconds; 0: now.
};

// Fills in what has no value. As in wandb itself, a value that is there wins.
// Throws ConfigError when a value cannot be used.
WandbConfig with_environment(WandbConfig config,
                             const base::Environment& environment);

// Whether a server of Weights & Biases takes it as a run id or a project.
bool is_wandb_name(std::string_view name);

// Throws ConfigError for names that a server of Weights & Biases refuses.
void check_wandb_names(const WandbConfig& config);

}  // namespace lockstep::track
