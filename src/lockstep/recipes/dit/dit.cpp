#include "lockstep/recipes/dit/dit.h"

#include "lockstep/datasets/images/image_sets.h"
#include "lockstep/image_scoring.h"
#include "lockstep/recipes/dit/dit_task.h"

namespace lockstep::recipes {
namespace {

void set_dit_defaults(TrainConfig& common) {
  common.data_path = "data";
  common.save_dir = "runs/dit";
  common.n_steps = 200'000;
  common.batch_size = 128;
  common.drop_last = true;
  common.precision = "auto";
  common.optimization.lr = 1e-4;
  common.optimization.ema_decay = {0.9999};
  common.optimization.ema_warmup = true;
  common.val_every = 10'000;
  common.save_every = 10'000;
  common.sample_every = 10'000;
  common.score.every = 50'000;
  common.records.use_wandb = true;
  common.records.wandb_project = "dit-cfm";
}

}  // namespace

void DitRecipe::describe(Settings& settings) {
  set_dit_defaults(settings.common);
  settings.files.checkpoint = "model.pth";
  settings.checkpoint = {.model = {{.key = "model"}},
                         .epoch = "",
                         .step = "",
                         .optimizer = "",
                         .scheduler = "",
                         .averages = {"ema"},
                         .average_layout = AverageLayout::kDotless};
  Options& options = settings.options;
  dit::DitConfig& model = settings_.model;
  const OptionDetails size = {.minimum = 1, .group = "DiT"};
  options.add("num_register_tokens", model.num_registers,
              "learned tokens beside the patches",
              {.minimum = 0, .group = "DiT"});
  options.add("dim", model.width, "width of a token", size);
  options.add("depth", model.depth, "blocks", size);
  options.add("heads", model.num_heads, "heads of attention", size);
  options.add("patch", model.patch, "pixels of a patch's side", size);
  options.add("img_size", model.image_size, "pixels of an image's side", size);
  options.add("class_dropout", settings_.class_dropout,
              "probability of dropping the class of an image, for guidance",
              {.minimum = 0, .maximum = 1, .group = "DiT"});
  options.add("cfg_scales", settings_.cfg_scales,
              "weights of guidance; a sampling shows all classes with each",
              {.minimum = 0, .group = "DiT"});
  options.add("sample_steps", settings_.sample_steps,
              "steps from noise to an image", size);
  options.add("num_classes", settings_.num_classes,
              "classes of images; unset: as many as the data have", size);
  describe_image_sampling(options, "DiT", settings_.sampling);
  describe_score(settings);
  options.add("fid_cfg_scale", settings_.fid_cfg_scale,
              "weight of guidance of images that are scored",
              {.minimum = 0, .group = "Score"});
  options.add("fid_steps", settings_.fid_steps,
              "steps from noise to an image that is scored",
              {.minimum = 1, .group = "Score"});
}

std::unique_ptr<Task> DitRecipe::build(const Settings& settings,
                                       Purpose purpose) {
  dit::check_dit_config(settings_.model);
  images::ImageSets sets;
  if (purpose != Purpose::kSample || !settings_.num_classes) {
    sets = images::open_image_sets(settings.common.data_path,
                                   settings_.model.image_size);
    // Saved in the run's settings, so that sampling needs no data.
    settings_.num_classes = images::classes_of(sets, settings_.num_classes);
  }
  settings_.model.num_classes = *settings_.num_classes;
  check_image_sampling(settings_.sampling, settings_.model.num_classes);
  return std::make_unique<DitTask>(settings_, std::move(sets),
                                   settings.common.score.num_images);
}

}  // namespace lockstep::recipes
