// The settings of the recipe atlas: names, YAML keys, defaults.
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "lockstep/base/clock.h"
#include "lockstep/error.h"
#include "lockstep/recipes/atlas/atlas.h"

namespace lockstep::recipes {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kPrecisions = {"fp32", "bf16", "fp16"};

void set_atlas_defaults(TrainConfig& common) {
  common.data_path = "./dataset";
  common.save_dir = "./checkpoints";
  common.epochs = 50;
  common.batch_size = 8;
  common.workers = 4;
  common.precision = "auto16";
  common.log_every = 100;
  common.val_every = 1000;
  common.save_every = 5000;
  common.keep_last = 0;
  OptimizationConfig& optimization = common.optimization;
  optimization.lr = 1e-4;
  optimization.lr_scaling = "linear";
  optimization.lr_schedule = "cosine";
  optimization.warmup_steps = 1000;
  optimization.weight_decay = 0.01;
  optimization.max_grad_norm = 1;
}

// "train_20260301_091502.log"
std::string log_name() {
  std::string name = "train_";
  for (const char letter : base::local_timestamp(base::unix_seconds())) {
    if (letter != '-' && letter != ':') name += letter;
  }
  return name + ".log";
}

struct CommonName {
  const char* name;
  const char* key;
  const char* alias;  // Null: none.
};

constexpr auto kCommonNames = std::to_array<CommonName>({
    {"data_path", "data.data_dir", "data_dir"},
    {"batch_size", "data.batch_size", nullptr},
    {"workers", "data.num_workers", "num_workers"},
    {"epochs", "training.num_epochs", "num_epochs"},
    {"lr", "training.learning_rate", "learning_rate"},
    {"lr_scaling", "training.lr_scaling", nullptr},
    {"lr_schedule", "training.lr_schedule", nullptr},
    {"weight_decay", "training.weight_decay", nullptr},
    {"warmup_steps", "training.warmup_steps", nullptr},
    {"min_lr", "training.min_lr", nullptr},
    {"max_grad_norm", "training.max_grad_norm", nullptr},
    {"gradient_accumulation_steps", "training.gradient_accumulation_steps",
     nullptr},
    {"precision", "training.precision", nullptr},
    {"seed", "training.seed", nullptr},
    {"log_every", "training.log_interval", "log_interval"},
    {"val_every", "training.val_interval", "val_interval"},
    {"save_every", "training.save_interval", "save_interval"},
    {"save_dir", "checkpoint.save_dir", nullptr},
    {"resume", "checkpoint.resume_from", "resume_from"},
    {"keep_last", "checkpoint.keep_last", nullptr},
    {"use_wandb", "wandb.enabled", nullptr},
    {"wandb_project", "wandb.project", nullptr},
    {"wandb_name", "wandb.name", nullptr},
    {"wandb_entity", "wandb.entity", nullptr},
    {"wandb_tags", "wandb.tags", nullptr},
    {"wandb_notes", "wandb.notes", nullptr},
});

}  // namespace

void AtlasRecipe::describe(Settings& settings) {
  set_atlas_defaults(settings.common);
  settings.files.epoch_checkpoint = "checkpoint_epoch_{epoch}.pt";
  settings.checkpoint = {.scaler = "scaler_state_dict",
                         .best = "best_val_loss"};
  Options& options = settings.options;
  // "checkpoint" is a section of the file.
  if (options.has("checkpoint")) options.set_key("checkpoint", "weights");
  for (const CommonName& row : kCommonNames) {
    options.set_key(row.name, row.key);
    if (row.alias != nullptr) options.add_alias(row.name, row.alias);
  }
  describe_model(options);
  describe_data(options);
  describe_training(options);
  describe_files(options);
  describe_sample(options);
  log_name_ = log_name();
  settings.add_rule([this, &settings] { resolve(settings); });
}

void AtlasRecipe::describe_model(Options& options) {
  atlas::EncoderSettings& encoders = settings_.encoders;
  atlas::AtlasModelConfig& model = settings_.model;
  const auto details = [](const std::string& name, OptionDetails more = {}) {
    more.key = "model." + name;
    more.group = "Atlas: model";
    return more;
  };
  const auto size = [&](const std::string& name) {
    return details(name, {.minimum = 1});
  };
  options.add("vggt_checkpoint", encoders.vggt_checkpoint,
              "VGGT: file or folder of weights, name of the hub, or vggt_tiny",
              details("vggt_checkpoint"));
  options.add("lang_encoder_name", encoders.lang_encoder_name,
              "LLaMA: folder, name of the hub, or llama_tiny",
              details("lang_encoder_name"));
  options.add("freeze_vggt", encoders.freeze_vggt, "freeze VGGT",
              details("freeze_vggt"));
  options.add("freeze_lang_encoder", encoders.freeze_lang_encoder,
              "freeze LLaMA", details("freeze_lang_encoder"));
  std::vector<std::string> with_auto = kPrecisions;
  with_auto.insert(with_auto.begin(), "auto");
  options.add("encoder_precision", encoders.encoder_precision,
              "precision of frozen networks; auto: VGGT in bf16 on a GPU (its "
              "heads in fp32 always), LLaMA as in its file",
              details("encoder_precision", {.choices = with_auto}));
  options.add("geom_output_dim", model.geometry.outputs,
              "width of the geometry features of a view; tokens and points "
              "take half of it each, the pose a quarter",
              details("geom_output_dim", {.minimum = 4}));
  options.add("fusion_hidden_dim", model.fusion.width, "width of the fusion",
              size("fusion_hidden_dim"));
  options.add("fusion_heads", model.fusion.num_heads,
              "heads of attention of the fusion", size("fusion_heads"));
  options.add("fusion_layers", model.fusion.num_layers, "layers of the fusion",
              size("fusion_layers"));
  options.add("dropout", model.fusion.dropout, "dropout of fusion and head",
              details("dropout", {.minimum = 0, .maximum = 0.99}));
  options.add("action_dim", settings_.file.action_dim,
              "numbers of an action: always 7", details("action_dim"));
  options.add("use_pointnet", encoders.use_pointnet, "use the point cloud",
              details("use_pointnet"));
  options.add("use_pose", encoders.use_pose, "use the camera pose",
              details("use_pose"));
  options.add("point_stride", encoders.point_stride,
              "every n-th row and column of the points: 4 makes a cache of "
              "features 16 times smaller",
              size("point_stride"));
  options.add("point_precision", encoders.point_precision,
              "precision of points in the cache and the model",
              details("point_precision", {.choices = kPrecisions}));
  options.add("gripper_range", settings_.gripper_range,
              "numbers that the gripper takes; auto: minus_one_one where the "
              "data have a negative one",
              details("gripper_range",
                      {.choices = {"auto", "zero_one", "minus_one_one"}}));
}

void AtlasRecipe::describe_data(Options& options) {
  episodes::FrameConfig& frames = settings_.frames;
  const auto details = [](const std::string& name, OptionDetails more = {}) {
    more.key = "data." + name;
    more.group = "Atlas: data";
    return more;
  };
  options.add("train_split", frames.train_split,
              "folder of data_dir to train on", details("train_split"));
  options.add("val_split", frames.val_split,
              "folder to validate on; none given: val where it is, else "
              "val_fraction of the episodes; empty: no validation",
              details("val_split"));
  options.add("val_fraction", frames.val_fraction,
              "part of the episodes that is held back where there is no folder "
              "to validate on",
              details("val_fraction", {.minimum = 0, .maximum = 0.9}));
  options.add("image_size", settings_.encoders.image_size,
              "side of the images in pixels",
              details("image_size", {.minimum = 14}));
  options.add("use_wrist_camera", frames.use_wrist_camera,
              "two views: workspace and wrist", details("use_wrist_camera"));
  options.add("cache_features", settings_.cache_features,
              "cache features of frozen networks: computed once per frame, for "
              "all epochs and runs",
              details("cache_features"));
  options.add("cache_dir", settings_.cache_dir, "folder of these features",
              details("cache_dir"));
  options.add("cache_batch_size", settings_.cache_batch_size,
              "frames at a time while they are computed",
              details("cache_batch_size", {.minimum = 1}));
}

void AtlasRecipe::describe_training(Options& options) {
  atlas::AtlasLossConfig& loss = settings_.loss;
  const auto details = [](const std::string& name, OptionDetails more = {}) {
    more.key = "training.loss." + name;
    more.group = "Atlas: loss";
    return more;
  };
  options.add("pose_weight", loss.pose_weight, "weight of the pose in the loss",
              details("pose_weight", {.minimum = 0}));
  options.add("gripper_weight", loss.gripper_weight,
              "weight of the gripper in the loss",
              details("gripper_weight", {.minimum = 0}));
  options.add(
      "pose_loss_type", loss.pose_loss_type, "loss of the pose",
      details("pose_loss_type", {.choices = {"smooth_l1", "l1", "l2"}}));
  options.add("gripper_loss_type", loss.gripper_loss_type,
              "loss of the gripper",
              details("gripper_loss_type", {.choices = {"l1", "bce"}}));
}

void AtlasRecipe::describe_files(Options& options) {
  AtlasFileSettings& file = settings_.file;
  const auto details = [](const std::string& key, OptionDetails more = {}) {
    more.key = key;
    more.group = "Atlas: files";
    return more;
  };
  options.add("save_to_file", settings_.save_to_file, "write a log file",
              details("logging.save_to_file"));
  // --log_dir is an option of the launcher: the folder of the workers' output.
  options.add("train_log_dir", settings_.log_dir,
              "folder of train_{date}_{time}.log", details("logging.log_dir"));
  options.add("log_file", settings_.log_file, "another name of the log file",
              details("logging.log_file"));
  options.add("console_output", file.console_output,
              "accepted; console output is always on",
              details("logging.console_output"));
  options.add("use_huggingface", file.use_huggingface,
              "the data are those of hf_dataset_name, as `lockstep prepare "
              "atlas` has put them into data_dir",
              details("data.use_huggingface"));
  options.add("hf_dataset_name", file.hf_dataset_name,
              "data set of the hub, for the command that prepares it",
              details("data.hf_dataset_name"));
  options.add("hf_cache_dir", file.hf_cache_dir,
              "accepted; data are read from data_dir",
              details("data.hf_cache_dir"));
  options.add("streaming", file.streaming,
              "accepted; data are read from data_dir",
              details("data.streaming"));
  options.add("hf_token", file.token,
              "accepted and neither used nor kept: nothing is downloaded",
              details("huggingface.token", {.once = true}));
  options.add("wandb_save_code", file.save_code,
              "accepted; the settings are always saved",
              details("wandb.save_code"));
  options.add("wandb_resume", file.wandb_resume,
              "accepted; a resumed run continues its record",
              details("wandb.resume"));
}

void AtlasRecipe::describe_sample(Options& options) {
  const auto once = [](OptionDetails more = {}) {
    more.group = "Atlas: eval and sample";
    more.once = true;
    return more;
  };
  options.add("split", settings_.split,
              "what `lockstep eval` takes: train_split, or a split to "
              "validate on",
              once());
  options.add("workspace", settings_.workspace,
              "image of the workspace, for `lockstep sample`", once());
  options.add("wrist", settings_.wrist,
              "image of the wrist camera, for `lockstep sample`", once());
  options.add("instruction", settings_.instruction,
              "what to do, for `lockstep sample`", once());
}

void AtlasRecipe::resolve(Settings& settings) {
  TrainConfig& common = settings.common;
  if (settings_.file.action_dim != 7) {
    throw ConfigError(fmt::format(
        "action_dim {}: an action has 7 numbers (x, y, z, roll, pitch, yaw, "
        "gripper)",
        settings_.file.action_dim));
  }
  // Like the original's CosineAnnealingLR, without warm-up.
  if (common.optimization.warmup_steps == 0) {
    settings.set_default("min_lr", common.optimization.min_lr, 1e-6);
  }
  if (settings_.encoders.vggt_checkpoint == "vggt_tiny") {
    settings.set_default("image_size", settings_.encoders.image_size,
                         vggt::vggt_preset("vggt_tiny").image_size);
  }
  settings_.model.head_dropout = settings_.model.fusion.dropout;
  settings_.model.geometry.use_pointnet = settings_.encoders.use_pointnet;
  settings_.model.geometry.use_pose = settings_.encoders.use_pose;
  settings_.model.fusion.geometry_size = settings_.model.geometry.outputs;
  settings_.frames.image_size = static_cast<int>(settings_.encoders.image_size);
  settings_.frames.data_dir = common.data_path;
  settings_.encoders.notes = settings_.cache_dir;
  // Next to the checkpoint folder, not inside it.
  const fs::path log = settings_.log_file
                           ? fs::path(*settings_.log_file)
                           : fs::path(settings_.log_dir) / log_name_;
  settings.files.log =
      settings_.save_to_file ? fs::absolute(log).string() : "train.log";
}

}  // namespace lockstep::recipes
