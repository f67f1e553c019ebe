#include "lockstep/engine/common_settings.h"

#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::engine {
namespace {

void describe_run(Options& options, TrainConfig& config) {
  const std::string group = "Run";
  options.add("data_path", config.data_path,
              "the data: a path, or builtin:NAME for a generated set",
              {.group = group});
  options.add("save_dir", config.save_dir,
              "the run folder: log, config, records and checkpoints",
              {.aliases = {"output_dir"}, .group = group});
  options.add("resume", config.resume,
              "a checkpoint to resume from, or 'latest' of the run folder; its "
              "settings are used unless flags or --config change them",
              {.group = group, .once = true});
  options.add("init_from", config.init_from,
              "start with the weights of this file (.pt, .pth, .safetensors)",
              {.group = group});
  options.add("ignore_mismatched_sizes", config.ignore_mismatched_sizes,
              "with init_from: tensors of another shape keep their initial "
              "values, with a warning that names them; else they are an error",
              {.group = group});
  options.add("overwrite", config.overwrite,
              "start over in a run folder that already holds a run",
              {.group = group, .once = true});
  options.add("seed", config.seed, "decides data order and all random draws",
              {.minimum = 0, .group = group});
  options.add("deterministic", config.deterministic,
              "use deterministic kernels only", {.group = group});
  options.add("cuda_graph", config.cuda_graph,
              "on a GPU capture a step in a CUDA graph and replay it; else the "
              "host launches every kernel",
              {.group = group});
  options.add("device", config.device, "where to compute",
              {.choices = {"auto", "cpu", "cuda"}, .group = group});
  options.add(
      "precision", config.precision,
      "arithmetic: auto is bf16 on a GPU and fp32 on the CPU, auto16 fp16 on a "
      "GPU; fp16 uses loss scaling; fp64 is for testing",
      {.choices = {"auto", "auto16", "fp32", "tf32", "bf16", "fp16", "fp64"},
       .group = group,
       .follows = "use_amp"});
  options.add("use_amp", config.use_amp,
              "mixed precision: fp16 on a GPU, bf16 on the CPU",
              {.group = group});
  options.add("timeout", config.timeout,
              "seconds that a rank waits for the others",
              {.minimum = 0.001,
               .group = group,
               .shown_default = "TORCH_DISTRIBUTED_TIMEOUT, else 600"});
}

void describe_data(Options& options, TrainConfig& config) {
  const std::string group = "Length and batches";
  options.add("epochs", config.epochs, "passes over the data",
              {.minimum = 1, .group = group});
  options.add("n_steps", config.n_steps,
              "optimizer steps of the run; decides instead of --epochs",
              {.minimum = 1, .group = group});
  options.add("batch_size", config.batch_size,
              "samples per process and micro-batch",
              {.minimum = 1, .group = group, .follows = "global_batch_size"});
  options.add("global_batch_size", config.global_batch_size,
              "samples per optimizer step of all processes together",
              {.minimum = 1, .group = group});
  options.add("gradient_accumulation_steps", config.gradient_accumulation_steps,
              "micro-batches per optimizer step",
              {.minimum = 1, .group = group, .follows = "global_batch_size"});
  options.add("on_oom", config.on_oom,
              "when a step runs out of memory: fail ends the training; halve "
              "repeats the step with half the samples per micro-batch and "
              "twice the accumulation, and goes on so; halve_anyway also where "
              "that changes the gradient (batch statistics)",
              {.choices = {"fail", "halve", "halve_anyway"}, .group = group});
  options.add("drop_last", config.drop_last,
              "leave out an epoch's last step when it is not full",
              {.group = group});
  options.add("workers", config.workers, "loader threads per process",
              {.aliases = {"num_workers"}, .minimum = 0, .group = group});
  options.add("skip_bad_samples", config.skip_bad_samples,
              "take another sample in place of one that cannot be read, and "
              "count them",
              {.group = group});
}

void describe_optimizer(Options& options, OptimizationConfig& config) {
  const std::string group = "Optimizer";
  options.add("optimizer", config.optimizer, "fused optimizer",
              {.choices = {"adamw", "adam", "sgd"}, .group = group});
  options.add("weight_decay", config.weight_decay, "weight decay",
              {.minimum = 0, .group = group});
  options.add("beta1", config.beta1, "for Adam and AdamW",
              {.minimum = 0, .maximum = 1, .group = group});
  options.add("beta2", config.beta2, "for Adam and AdamW",
              {.minimum = 0, .maximum = 1, .group = group});
  options.add("eps", config.eps, "for Adam and AdamW",
              {.minimum = 0, .group = group});
  options.add("momentum", config.momentum, "of SGD",
              {.minimum = 0, .group = group});
  options.add("nesterov", config.nesterov, "Nesterov momentum of SGD",
              {.group = group});
  options.add("max_grad_norm", config.max_grad_norm,
              "clip the gradient's norm to this; 0: no clipping",
              {.minimum = 0, .group = group});
  options.add("max_skipped_steps", config.max_skipped_steps,
              "stop after this many steps in a row whose gradient is NaN or "
              "infinite",
              {.minimum = 1, .group = group});
  options.add("ema_decay", config.ema_decay,
              "decays of moving averages of the weights, one average each",
              {.minimum = 0, .maximum = 1, .group = group});
  options.add("ema_warmup", config.ema_warmup,
              "n-th update decays by at most (1 + n) / (10 + n)",
              {.group = group});
  options.add("shard_optimizer", config.shard_optimizer,
              "CPU processes of one machine keep one copy of weights, "
              "optimizer state and averages, and update a part each",
              {.group = group});
}

void describe_learning_rate(Options& options, OptimizationConfig& config) {
  const std::string group = "Learning rate";
  options.add("lr", config.lr, "learning rate of one process",
              {.aliases = {"learning_rate"}, .minimum = 0, .group = group});
  options.add("lr_scaling", config.lr_scaling,
              "how the learning rate scales with the number of processes",
              {.choices = {"none", "linear", "sqrt"}, .group = group});
  options.add("lr_schedule", config.lr_schedule,
              "learning rate schedule; plateau watches the validation metric",
              {.choices = {"constant", "linear", "cosine", "step", "plateau"},
               .group = group});
  options.add("warmup_steps", config.warmup_steps,
              "optimizer steps of warm-up: step k of W uses lr * k / W",
              {.minimum = 0, .group = group});
  options.add("warmup_epochs", config.warmup_epochs,
              "the same in epochs; giving one of the two replaces a default of "
              "the other",
              {.minimum = 0, .group = group});
  options.add("min_lr", config.min_lr, "final learning rate of the schedule",
              {.minimum = 0, .group = group});
  options.add("lr_step_epochs", config.lr_step_epochs,
              "epochs between two drops of the step schedule",
              {.minimum = 1, .group = group});
  options.add("lr_gamma", config.lr_gamma,
              "factor of a drop, for step and plateau",
              {.minimum = 0, .maximum = 1, .group = group});
  options.add("plateau_patience", config.plateau_patience,
              "validations without progress before a drop",
              {.minimum = 0, .group = group});
}

void describe_intervals(Options& options, TrainConfig& config) {
  const std::string group = "Intervals";
  options.add("log_every", config.log_every, "optimizer steps between logs",
              {.minimum = 1, .group = group});
  options.add("val_every", config.val_every,
              "optimizer steps between validations; unset: by epochs",
              {.minimum = 1, .group = group});
  options.add("val_every_epochs", config.val_every_epochs,
              "epochs between validations; 0: none",
              {.minimum = 0, .group = group});
  options.add("save_every", config.save_every,
              "optimizer steps between checkpoints; unset: by epochs",
              {.minimum = 1, .group = group});
  options.add("save_every_epochs", config.save_every_epochs,
              "epochs between checkpoints; 0: only the last",
              {.minimum = 0, .group = group});
  options.add("sample_every", config.sample_every,
              "optimizer steps between samplings; unset: none",
              {.minimum = 1, .group = group});
  options.add("keep_last", config.keep_last,
              "checkpoints that are kept besides the best; 0: all",
              {.minimum = 0, .group = group});
  options.add("save_required", config.save_required,
              "end with an error when 3 checkpoints in a row cannot be "
              "written; otherwise the run continues and logs an error",
              {.group = group});
  options.add("check_replicas_every", config.check_replicas_every,
              "optimizer steps between comparisons of the processes' weights "
              "and optimizer state, which find flipped bits; also before each "
              "checkpoint; 0: never",
              {.minimum = 0, .group = group});
  options.add("stop_after_steps", config.stop_after_steps,
              "save and end after this many optimizer steps of this start; "
              "schedule and end of the training stay",
              {.minimum = 1, .group = group});
  options.add("early_stopping_patience", config.early_stopping_patience,
              "stop after this many validations without progress",
              {.minimum = 1, .group = group});
  options.add("early_stopping_min_delta", config.early_stopping_min_delta,
              "what counts as progress", {.minimum = 0, .group = group});
}

void describe_records(Options& options, RecordsConfig& config) {
  const std::string group = "Records";
  options.add("tensorboard", config.tensorboard,
              "events for TensorBoard in the run folder's tensorboard/",
              {.key = "tensorboard.enabled", .group = group});
  options.add("use_wandb", config.use_wandb,
              "a run for Weights & Biases in wandb/, offline unless "
              "WANDB_MODE=online; WANDB_DIR and its other variables count",
              {.key = "wandb.enabled", .group = group});
  options.add("wandb_project", config.wandb_project,
              "its project; unset: WANDB_PROJECT, else lockstep",
              {.key = "wandb.project", .group = group});
  options.add("wandb_name", config.wandb_name,
              "its name; unset: WANDB_NAME, else the server chooses",
              {.key = "wandb.name", .group = group});
  options.add("wandb_entity", config.wandb_entity,
              "its team or user; unset: WANDB_ENTITY",
              {.key = "wandb.entity", .group = group});
  options.add("wandb_tags", config.wandb_tags, "its tags",
              {.key = "wandb.tags", .group = group});
  options.add("wandb_notes", config.wandb_notes, "a longer description",
              {.key = "wandb.notes", .group = group});
  options.add("wandb_exit_timeout", config.wandb_exit_timeout,
              "with WANDB_MODE=online: longest wait for the upload at the end, "
              "in seconds",
              {.key = "wandb.exit_timeout",
               .minimum = 0,
               .maximum = 300,
               .group = group});
}

void describe_dry_runs(Options& options, TrainConfig& config) {
  const std::string group = "Dry runs";
  options.add("fast_dev_run", config.fast_dev_run,
              "one training, one validation and one sampling step; writes "
              "nothing but its log",
              {.group = group});
  options.add("overfit_batches", config.overfit_batches,
              "train on the first N steps of data, again and again",
              {.minimum = 1, .group = group});
  options.add("limit_train_batches", config.limit_train_batches,
              "optimizer steps per epoch; below 1: a part of them",
              {.minimum = 0, .group = group});
  options.add("limit_val_batches", config.limit_val_batches,
              "batches per validation and process; below 1: a part of them",
              {.minimum = 0, .group = group});
}

void describe_launch_words(Options& options, LaunchWords& words) {
  const std::string group = "Launch words of the guides (lockstep run decides)";
  options.add("distributed", words.distributed, "accepted",
              {.group = group, .once = true});
  options.add("ddp", words.ddp, "accepted", {.group = group, .once = true});
  options.add("local_rank", words.local_rank,
              "must agree with the environment; -1: not given",
              {.group = group, .once = true});
  options.add("world_size", words.world_size,
              "must agree with the environment; -1: not given",
              {.group = group, .once = true});
  options.add("dist_url", words.dist_url, "env://, tcp:// or file://",
              {.group = group, .once = true});
  options.add("master_addr", words.master_addr,
              "must agree with the environment",
              {.group = group, .once = true});
  options.add("master_port", words.master_port,
              "must agree with the environment",
              {.group = group, .once = true});
}

}  // namespace

void describe_common(Options& options, TrainConfig& config) {
  describe_run(options, config);
  describe_data(options, config);
  describe_optimizer(options, config.optimization);
  describe_learning_rate(options, config.optimization);
  describe_intervals(options, config);
  describe_records(options, config.records);
  describe_dry_runs(options, config);
  describe_launch_words(options, config.launch);
}

const char* warmup_flag(const OptimizationConfig& optimization) {
  return optimization.warmup_epochs > 0 ? "--warmup_epochs" : "--warmup_steps";
}

DeviceChoice parse_device_choice(const std::string& name) {
  if (name == "cpu") return DeviceChoice::kCpu;
  if (name == "cuda") return DeviceChoice::kCuda;
  return DeviceChoice::kAuto;
}

void check_config(const TrainConfig& config, const Options& options) {
  const OptimizationConfig& optimization = config.optimization;
  if (optimization.warmup_steps > 0 && optimization.warmup_epochs > 0) {
    throw ConfigError(
        "--warmup_steps and --warmup_epochs are both given; they say the same "
        "in two units: leave one out");
  }
  if (optimization.blr && (options.source("lr") == Source::kFlag ||
                           options.source("lr_scaling") == Source::kFlag)) {
    throw ConfigError(
        "--blr sets the learning rate by the effective batch; --lr and "
        "--lr_scaling set it otherwise: leave one out");
  }
  if (config.use_amp && options.was_given("precision") &&
      config.precision != "fp16" && config.precision != "bf16" &&
      config.precision != "auto16") {
    throw ConfigError(fmt::format(
        "--use_amp asks for mixed precision and --precision {} for none: leave "
        "one of them out",
        config.precision));
  }
  if (config.limit_train_batches == 0.0) {
    throw ConfigError("--limit_train_batches 0 leaves no step to train");
  }
  if (config.limit_val_batches == 0.0) {
    throw ConfigError(
        "--limit_val_batches 0 leaves nothing to validate on; "
        "--val_every_epochs 0 turns validation off");
  }
  if (config.overfit_batches && config.limit_train_batches) {
    throw ConfigError(
        "--overfit_batches and --limit_train_batches both set the steps of an "
        "epoch: leave one out");
  }
  if (config.resume && config.overwrite) {
    throw ConfigError(
        "--resume continues a run and --overwrite deletes it: leave one out");
  }
  if (config.resume && *config.resume != "latest" &&
      options.source("init_from") == Source::kFlag) {
    throw ConfigError(
        "--resume takes the weights of a run and --init_from those of a file: "
        "leave one out");
  }
  if (config.resume && config.fast_dev_run) {
    throw ConfigError(
        "--fast_dev_run writes nothing and cannot --resume a run: leave one "
        "out");
  }
}

}  // namespace lockstep::engine
