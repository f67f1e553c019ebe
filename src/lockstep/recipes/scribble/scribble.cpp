#include "lockstep/recipes/scribble/scribble.h"

#include <c10/core/MemoryFormat.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/files.h"
#include "lockstep/datasets/voc/prepare.h"
#include "lockstep/error.h"
#include "lockstep/models/deeplab/weights.h"

namespace lockstep {
namespace {

constexpr int64_t kShownImages = 4;
// The generated images are small.
constexpr int64_t kGeneratedSide = 97;

void set_defaults(TrainConfig& common) {
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

// Convolutions are faster so. Those of 1 x 1 pixels count as being of either
// format: they get the strides that their gradients will have.
void make_channels_last(torch::nn::Module& model) {
  for (auto& item : model.named_parameters()) {
    at::Tensor& parameter = item.value();
    // LoRM's query is used as a matrix.
    const bool is_matrix = item.key().ends_with("query_conv.weight");
    if (parameter.dim() != 4 || is_matrix) continue;
    at::Tensor like = torch::empty_strided(
        parameter.sizes(), c10::get_channels_last_strides_2d(parameter.sizes()),
        parameter.options());
    like.copy_(parameter.detach());
    parameter.set_data(like);
  }
}

bool is_generated(const TrainConfig& common) {
  return common.data_path == kBuiltinScribble;
}

}  // namespace

void ScribbleRecipe::describe(Options& options, TrainConfig& common) {
  set_defaults(common);
  name_common_settings(options);
  const std::string group = "Scribble";
  options.add("model_type", settings_.model.type, "network",
              {.choices = scribble_model_types(), .group = group});
  options.add("layers", settings_.model.layers,
              "of the trunk: 18, 34, 50, 101 or 152", {.group = group});
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
}

void ScribbleRecipe::describe_data(Options& options) {
  const std::string group = "Scribble, data";
  const OptionDetails details = {.group = group};
  ScribbleDataConfig& data = settings_.data;
  options.add("dataset", settings_.mode, "what there is to learn from",
              {.choices = scribble_mode_words(), .group = group});
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
              "pixels of a image's longer side at scale 1",
              {.minimum = 1, .group = group});
  options.add("save_path", settings_.save_path,
              "eval: folder for the segmented images, and its name with .txt "
              "for the results; empty: none",
              {.group = group, .once = true});
  options.add("images", settings_.images,
              "sample: a image or a folder of images to segment",
              {.group = group, .once = true});
}

void ScribbleRecipe::resolve_defaults(const Options& options,
                                      TrainConfig& common) {
  if (!is_generated(common)) return;
  if (!options.was_given("crop_size")) {
    settings_.data.augment.side = kGeneratedSide;
  }
  if (!options.was_given("eval_base_size")) {
    settings_.windows.base_side = kGeneratedSide;
  }
}

TaskInfo ScribbleRecipe::facts() const {
  return {
      .name = "scribble",
      .summary = "segmentation learned from scribbles: dilated ResNet and LoRM",
      .subject = fmt::format("{}, {} layers, on {} classes{}",
                             settings_.model.type, settings_.model.layers,
                             settings_.model.num_classes, data_text_),
      .files = {.checkpoint = "checkpoint_{epoch}.pth",
                .best = "model_best.pth",
                .log = "log.txt",
                .last = "last_checkpoint.pth"},
      .keys = {.model = {{.key = "state_dict"}},
               .step = "",
               .optimizer = "optimizer",
               .scheduler = "",
               .best = "best_pred",
               .best_metrics = {"iou", "acc"}},
      .best_metric = "iou",
      .better = Better::kHigher,
      .memory_remedies = {"--batchsize 4", "--crop_size 321"},
      .has_unused_parameters =
          has_lorm(settings_.model) && settings_.weights.l_lorm == 0,
      .shapes = BatchShapes::kStatic,
      .sync_batch_norm = true,
      .flops_per_sample = 3 * scribble_forward_flops(
                                  settings_.model, settings_.data.augment.side),
      .num_sample_items =
          shown_ == nullptr ? 0 : std::min(kShownImages, shown_->size()),
      .num_inputs = own_images_.size()};
}

double ScribbleRecipe::pseudo_weight() const {
  const ScribbleWeights& weights = settings_.weights;
  if (weights.l_pesudo) return *weights.l_pesudo;
  return weights.label_smooth > 0 ? weights.l_segs : 0;
}

// A weight on data that the mode does not have would silently teach nothing.
void ScribbleRecipe::check_weights() const {
  const ScribbleMode mode = settings_.data.mode;
  const auto require = [&](bool is_there, double weight, const char* flag) {
    if (is_there || weight == 0) return;
    throw ConfigError(fmt::format(
        "--{} {:g} needs data that --dataset {} does not have: set it to 0 or "
        "choose another mode, such as ScribblePseudoDsDc",
        flag, weight, settings_.mode));
  };
  const ScribbleWeights& weights = settings_.weights;
  if (mode == ScribbleMode::kPseudoOnly && pseudo_weight() > 0) {
    throw ConfigError(
        "--dataset PseudoOnly scores pseudo labels as labels, by --l_segs: "
        "leave --l_pesudo and --label_smooth out");
  }
  require(has_pseudo(mode), pseudo_weight(),
          weights.l_pesudo ? "l_pesudo" : "label_smooth, with a weight of");
  require(has_pseudo(mode), weights.l_lorm, "l_lorm");
  require(has_scribble_distances(mode), weights.l_ds, "l_ds");
  require(has_outline_distances(mode), weights.l_dc, "l_dc");
  if (weights.l_segs + pseudo_weight() + weights.l_lorm + weights.l_ds +
          weights.l_dc ==
      0) {
    throw ConfigError("all weights of the loss are 0: --l_segs 1 is usual");
  }
  if (weights.l_lorm > 0 && !has_lorm(settings_.model)) {
    throw ConfigError("--l_lorm: the model " + settings_.model.type +
                      " has no LoRM; use res50_ASPP_lorm or deeplabv3p_lorm");
  }
}

void ScribbleRecipe::settle_sizes() {
  check_scribble_config(settings_.model);
  settings_.data.num_classes = settings_.model.num_classes;
  settings_.windows.num_classes = settings_.model.num_classes;
  settings_.windows.window = settings_.data.augment.side;
}

DataSets ScribbleRecipe::open_data(const TrainConfig& common) {
  settle_sizes();
  settings_.data.dataset_path = common.data_path;
  settings_.data.mode = scribble_mode(settings_.mode);
  check_weights();
  const std::string& weights = settings_.model_path;
  if (!weights.empty() && weights != "None") {
    std::error_code error;
    if (!std::filesystem::is_regular_file(weights, error)) {
      throw ConfigError("--model_path '" + weights +
                        "': no such file; None begins with random weights, and "
                        "is enough for a run that is resumed");
    }
    first_weights_ = weights;
  }
  const ScribbleSets sets = open_scribble_sets(settings_.data);
  shown_ = sets.validation;
  data_text_ = fmt::format(
      ": {} images to train, {} to validate{}", sets.train->size(),
      shown_ ? shown_->size() : 0,
      shown_ ? "" : " (that takes val.txt and a folder SegmentationClassAug)");
  return {.train = sets.train, .validation = sets.validation};
}

DataSets ScribbleRecipe::open_eval_data(const TrainConfig& common) {
  settle_sizes();
  settings_.data.dataset_path = common.data_path;
  std::string& place = settings_.save_path;
  while (place.size() > 1 && place.ends_with('/')) place.pop_back();
  if (!place.empty()) make_output_folder(place);
  whole_ = open_whole_images(settings_.data);
  return {.validation = whole_};
}

void ScribbleRecipe::prepare_sampling(const TrainConfig& /*common*/) {
  settle_sizes();
  if (settings_.images.empty()) {
    throw ConfigError(
        "nothing to segment: --images gives a image or a folder of them");
  }
  own_images_ = OwnImages(settings_.images);
}

std::shared_ptr<torch::nn::Module> ScribbleRecipe::make_model() {
  model_ = std::make_shared<ScribbleNet>(settings_.model);
  if (first_weights_) load_scribble_weights(*model_, *first_weights_);
  make_channels_last(*model_);
  return model_;
}

std::string ScribbleRecipe::prepare(const std::vector<std::string>& arguments,
                                    const ShowProgress& progress) {
  return prepare_scribble(arguments, progress);
}

}  // namespace lockstep
