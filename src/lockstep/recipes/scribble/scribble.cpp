#include "lockstep/recipes/scribble/scribble.h"

#include <fmt/format.h>

#include <filesystem>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/recipes/scribble/scribble_task.h"

namespace lockstep::recipes {
namespace {

// The generated images are small.
constexpr int64_t kGeneratedSide = 97;

void set_scribble_defaults(TrainConfig& common) {
  common.data_path = "dataset/ScribbleSup";
  common.save_dir = "./log/";
  common.epochs = 50;
  common.batch_size = 16;
  common.workers = 4;
  // A step of one image has too few values for a BatchNorm.
  common.drop_last = true;
  common.precision = "auto16";
  common.seed = 1000;
  common.save_every_epochs = 5;
  common.sample_every = 500;
  OptimizationConfig& optimization = common.optimization;
  optimization.optimizer = "sgd";
  optimization.lr = 1e-3;
  optimization.lr_scaling = "linear";
  optimization.lr_schedule = "cosine";
  optimization.warmup_epochs = 5;
  optimization.weight_decay = 5e-4;
  optimization.momentum = 0.9;
}

void name_common_settings(Options& options) {
  options.add_alias("data_path", "dataset_path");
  options.add_alias("save_dir", "logdir");
  options.add_alias("batch_size", "batchsize");
  options.add_alias("save_every_epochs", "chk_interval");
  options.add_alias("warmup_epochs", "warmup_epoch");
  options.add_alias("warmup_epochs", "warmup");
  options.add_alias("weight_decay", "wdecay");
}

// A loss weight for data that the mode does not have would silently do nothing.
void check_weights(const ScribbleSettings& settings) {
  const voc::ScribbleMode mode = settings.data.mode;
  const ScribbleWeights& weights = settings.weights;
  const auto require = [&](bool is_there, double weight, const char* flag) {
    if (is_there || weight == 0) return;
    throw ConfigError(fmt::format(
        "--{} {:g} needs data that --dataset {} does not have: set it to 0 or "
        "choose another mode, such as ScribblePseudoDsDc",
        flag, weight, settings.mode));
  };
  if (mode == voc::ScribbleMode::kPseudoOnly && pseudo_weight(weights) > 0) {
    throw ConfigError(
        "--dataset PseudoOnly scores pseudo labels as labels, by --l_segs: "
        "leave --l_pesudo and --label_smooth out");
  }
  require(voc::has_pseudo(mode), pseudo_weight(weights),
          weights.l_pesudo ? "l_pesudo" : "label_smooth, with a weight of");
  require(voc::has_pseudo(mode), weights.l_lorm, "l_lorm");
  require(voc::has_scribble_distances(mode), weights.l_ds, "l_ds");
  require(voc::has_outline_distances(mode), weights.l_dc, "l_dc");
  if (weights.l_segs + pseudo_weight(weights) + weights.l_lorm + weights.l_ds +
          weights.l_dc ==
      0) {
    throw ConfigError("all weights of the loss are 0: --l_segs 1 is usual");
  }
  if (weights.l_lorm > 0 && !deeplab::has_lorm(settings.model)) {
    throw ConfigError("--l_lorm: the model " + settings.model.type +
                      " has no LoRM; use res50_ASPP_lorm or deeplabv3p_lorm");
  }
}

// The file with initial weights; no value: random weights.
std::optional<std::string> first_weights(const std::string& path) {
  if (path.empty() || path == "None") return std::nullopt;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw ConfigError("--model_path '" + path +
                      "': no such file; None begins with random weights, and "
                      "is enough for a run that is resumed");
  }
  return path;
}

ScribbleTaskData open_training(const ScribbleSettings& settings) {
  check_weights(settings);
  ScribbleTaskData data{.first_weights = first_weights(settings.model_path)};
  const voc::ScribbleSets sets = voc::open_scribble_sets(settings.data);
  data.sets = {.train = sets.train, .validation = sets.validation};
  data.shown = sets.validation;
  data.text = fmt::format(
      ": {} images to train, {} to validate{}", sets.train->size(),
      data.shown ? data.shown->size() : 0,
      data.shown ? ""
                 : " (that takes val.txt and a folder SegmentationClassAug)");
  return data;
}

ScribbleTaskData open_evaluation(const ScribbleSettings& settings) {
  if (!settings.save_path.empty()) base::make_output_folder(settings.save_path);
  ScribbleTaskData data{.whole = voc::open_whole_images(settings.data)};
  data.sets.validation = data.whole;
  return data;
}

ScribbleTaskData open_own_images(const ScribbleSettings& settings) {
  if (settings.images.empty()) {
    throw ConfigError(
        "nothing to segment: --images gives an image or a folder of them");
  }
  return {.own_images = voc::OwnImages(settings.images)};
}

}  // namespace

double pseudo_weight(const ScribbleWeights& weights) {
  if (weights.l_pesudo) return *weights.l_pesudo;
  return weights.label_smooth > 0 ? weights.l_segs : 0;
}

void ScribbleRecipe::describe(Settings& settings) {
  set_scribble_defaults(settings.common);
  name_common_settings(settings.options);
  settings.files = {.checkpoint = "checkpoint_{epoch}.pth",
                    .best = "model_best.pth",
                    .log = "log.txt",
                    .last = "last_checkpoint.pth"};
  settings.checkpoint = {.model = {{.key = "state_dict"}},
                         .step = "",
                         .optimizer = "optimizer",
                         .scheduler = "",
                         .best = "best_pred",
                         .best_metrics = {"iou", "acc"}};
  Options& options = settings.options;
  const std::string group = "Scribble";
  options.add("model_type", settings_.model.type, "network",
              {.choices = deeplab::scribble_model_types(), .group = group});
  options.add("layers", settings_.model.layers,
              "depth of the ResNet: 18, 34, 50, 101 or 152", {.group = group});
  options.add("numclasses", settings_.model.num_classes,
              "classes, the background among them",
              {.aliases = {"num_classes"},
               .minimum = 2,
               .maximum = 255,
               .group = group});
  options.add("model_path", settings_.model_path,
              "file to begin with: torchvision's ResNet weights or a "
              "checkpoint; None: random weights",
              {.group = group});
  describe_data(options);
  describe_loss(options);
  describe_evaluation(options);
  settings.add_rule([this, &settings] {
    if (settings.common.data_path != voc::kBuiltinScribble) return;
    settings.set_default("crop_size", settings_.data.augment.side,
                         kGeneratedSide);
    settings.set_default("eval_base_size", settings_.windows.base_side,
                         kGeneratedSide);
  });
}

void ScribbleRecipe::describe_data(Options& options) {
  const std::string group = "Scribble, data";
  const OptionDetails details = {.group = group};
  voc::ScribbleDataConfig& data = settings_.data;
  options.add("dataset", settings_.mode, "what there is to learn from",
              {.choices = voc::scribble_mode_words(), .group = group});
  options.add("train_path", data.train_path, "folder of scribbles", details);
  options.add("pesudo_path", data.pesudo_path, "folder of pseudo labels",
              details);
  options.add("distancemap_s", data.distancemap_s,
              "folder of distances from scribbles", details);
  options.add("distancemap_c", data.distancemap_c,
              "folder of distances from outlines of pseudo labels", details);
  options.add("crop_size", data.augment.side, "pixels of a crop's side",
              {.minimum = 33, .group = group});
}

void ScribbleRecipe::describe_loss(Options& options) {
  const OptionDetails number = {.minimum = 0, .group = "Scribble, loss"};
  ScribbleWeights& weights = settings_.weights;
  options.add("l_segs", weights.l_segs, "weight of the labelled pixels",
              {.aliases = {"l_seg"}, .minimum = 0, .group = "Scribble, loss"});
  options.add("l_pesudo", weights.l_pesudo,
              "weight of the pseudo labels; unset: that of l_segs when there "
              "is label smoothing, else 0",
              number);
  options.add("l_lorm", weights.l_lorm, "weight of LoRM", number);
  options.add("l_ds", weights.l_ds, "weight of the entropy near scribbles",
              number);
  options.add("l_dc", weights.l_dc, "weight of the entropy away from outlines",
              number);
  options.add("label_smooth", weights.label_smooth,
              "smoothing of the pseudo labels",
              {.minimum = 0, .maximum = 0.999, .group = "Scribble, loss"});
}

void ScribbleRecipe::describe_evaluation(Options& options) {
  const std::string group = "Scribble, evaluation";
  options.add("eval_scales", settings_.windows.scales,
              "sizes at which whole images are segmented",
              {.minimum = 0.01, .group = group});
  options.add("eval_base_size", settings_.windows.base_side,
              "pixels of an image's longer side at scale 1",
              {.minimum = 1, .group = group});
  options.add("save_path", settings_.save_path,
              "eval: folder for the segmented images, and its name with .txt "
              "for the results; empty: none",
              {.group = group, .once = true});
  options.add("images", settings_.images,
              "sample: an image or a folder of images to segment",
              {.group = group, .once = true});
}

std::unique_ptr<Task> ScribbleRecipe::build(const Settings& settings,
                                            Purpose purpose) {
  ScribbleSettings own = settings_;
  deeplab::check_scribble_config(own.model);
  own.data.num_classes = own.model.num_classes;
  own.data.dataset_path = settings.common.data_path;
  own.data.mode = voc::scribble_mode(own.mode);
  own.windows.num_classes = own.model.num_classes;
  own.windows.window = own.data.augment.side;
  std::string& folder = own.save_path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  ScribbleTaskData data;
  switch (purpose) {
    case Purpose::kEval: data = open_evaluation(own); break;
    case Purpose::kSample: data = open_own_images(own); break;
    default: data = open_training(own);
  }
  return std::make_unique<ScribbleTask>(own, std::move(data));
}

void ScribbleRecipe::describe_preparation(Options& options) {
  voc::describe_prepare_flags(options, preparation_);
}

std::string ScribbleRecipe::prepare(const Arguments& arguments,
                                    const Progress& progress) {
  return voc::prepare_scribble(arguments, progress);
}

}  // namespace lockstep::recipes
