// The settings that all recipes share. A recipe sets its own defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct OptimizationConfig {
  std::string optimizer = "adamw";
  double lr = 1e-3;
  // lr = blr * effective batch / 256; for recipes that have this flag.
  std::optional<double> blr = {};
  std::string lr_scaling = "none";
  std::string lr_schedule = "constant";
  int64_t warmup_steps = 0;
  double warmup_epochs = 0;
  double min_lr = 0;
  int64_t lr_step_epochs = 30;
  double lr_gamma = 0.1;
  int64_t plateau_patience = 10;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;
  bool nesterov = false;
  double max_grad_norm = 0;
  std::vector<double> ema_decay = {};
  bool ema_warmup = false;
  // CPU ranks of one machine keep one copy of weights, optimizer state and
  // averages, and update a part each.
  bool shard_optimizer = false;
  int64_t max_skipped_steps = 25;
};

// Trackers of a run. JSON lines, a table and plots are always written.
struct RecordsConfig {
  bool tensorboard = true;
  bool use_wandb = false;
  // Unset: taken from the environment (WANDB_PROJECT, ...).
  std::optional<std::string> wandb_project = {};
  std::optional<std::string> wandb_name = {};
  std::optional<std::string> wandb_entity = {};
  std::vector<std::string> wandb_tags = {};
  std::optional<std::string> wandb_notes = {};
  double wandb_exit_timeout = 30;  // Seconds.
};

// Scores of generated images (FID).
struct ScoreConfig {
  std::optional<int64_t> every = {};  // Steps.
  int64_t num_images = 10'000;
  std::string weights = {};
  std::string convention = "pytorch-fid";
  std::string statistics = {};
};

// Launch flags that some guides use. They never change a launched world.
struct LaunchWords {
  bool distributed = false;
  bool ddp = false;
  std::optional<int64_t> local_rank = {};
  std::optional<int64_t> world_size = {};
  std::string dist_url = "env://";
  std::optional<std::string> master_addr = {};
  std::optional<int64_t> master_port = {};
};

struct TrainConfig {
  std::string data_path = {};
  std::string save_dir = "output";
  std::optional<std::string> resume = {};
  std::optional<std::string> init_from = {};
  bool ignore_mismatched_sizes = false;  // Tensors of init_from.
  bool overwrite = false;

  int64_t epochs = 1;
  std::optional<int64_t> n_steps = {};
  int64_t batch_size = 32;
  std::optional<int64_t> global_batch_size = {};
  int64_t gradient_accumulation_steps = 1;
  bool drop_last = false;
  int64_t workers = 2;
  bool skip_bad_samples = false;

  OptimizationConfig optimization = {};
  std::string precision = "fp32";
  bool use_amp = false;
  std::string device = "auto";
  int64_t seed = 0;
  bool deterministic = false;
  bool cuda_graph = true;
  // "fail", "halve" or "halve_anyway" the micro-batch when memory runs out.
  std::string on_oom = "fail";

  int64_t log_every = 50;
  std::optional<int64_t> val_every = {};
  int64_t val_every_epochs = 1;
  std::optional<int64_t> save_every = {};
  int64_t save_every_epochs = 1;
  std::optional<int64_t> sample_every = {};
  int64_t keep_last = 3;
  bool save_required = false;
  // Compare the ranks' weights and optimizer state; 0: never.
  int64_t check_replicas_every = 100;
  // Save and end after this many steps of this start; the plan stays.
  std::optional<int64_t> stop_after_steps = {};
  std::optional<int64_t> early_stopping_patience = {};
  double early_stopping_min_delta = 0;
  std::optional<double> timeout = {};

  bool fast_dev_run = false;
  std::optional<int64_t> overfit_batches = {};
  std::optional<double> limit_train_batches = {};
  std::optional<double> limit_val_batches = {};

  ScoreConfig score = {};
  RecordsConfig records = {};
  LaunchWords launch = {};
};

}  // namespace lockstep
