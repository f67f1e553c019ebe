#include "lockstep/recipes/dit/dit.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/datasets/images/image_sets.h"
#include "lockstep/diffusion/pixels.h"
#include "lockstep/fid/image_score.h"
#include "lockstep/recipes/images/grid.h"

namespace lockstep {
namespace {

void set_defaults(TrainConfig& common) {
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

void DitRecipe::describe(Options& options, TrainConfig& common) {
  set_defaults(common);
  DitConfig& model = settings_.model;
  const OptionDetails size = {.minimum = 1, .group = "DiT"};
  options.add("num_register_tokens", model.num_registers,
              "learned tokens beside the patches",
              {.minimum = 0, .group = "DiT"});
  options.add("dim", model.width, "width of a token", size);
  options.add("depth", model.depth, "blocks", size);
  options.add("heads", model.num_heads, "heads of attention", size);
  options.add("patch", model.patch, "pixels of a patch's side", size);
  options.add("img_size", model.image_size, "pixels of a image's side", size);
  options.add("class_dropout", settings_.class_dropout,
              "how often a image is shown without its class",
              {.minimum = 0, .maximum = 1, .group = "DiT"});
  options.add("cfg_scales", settings_.cfg_scales,
              "weights of guidance; a sampling shows all classes with each",
              {.minimum = 0, .group = "DiT"});
  options.add("sample_steps", settings_.sample_steps,
              "steps from noise to a image", size);
  options.add("num_classes", settings_.num_classes,
              "classes of images; unset: as many as the data have", size);
  describe_image_sampling(options, "DiT", settings_.sampling);
  describe_score(options, common.score);
  options.add("fid_cfg_scale", settings_.fid_cfg_scale,
              "weight of guidance of images that are scored",
              {.minimum = 0, .group = "Score"});
  options.add("fid_steps", settings_.fid_steps,
              "steps from noise to a image that is scored",
              {.minimum = 1, .group = "Score"});
}

int64_t DitRecipe::items_per_scale() const {
  return items_of_sampling(settings_.sampling, settings_.model.num_classes);
}

TaskInfo DitRecipe::facts() const {
  const auto num_scales = static_cast<int64_t>(settings_.cfg_scales.size());
  return {.name = "dit",
          .summary = "images by class from noise: DiT and rectified flow",
          .subject = fmt::format("DiT on images of {} classes",
                                 settings_.model.num_classes),
          .files = {.checkpoint = "model.pth"},
          .keys = {.model = {{.key = "model"}},
                   .epoch = "",
                   .step = "",
                   .optimizer = "",
                   .scheduler = "",
                   .averages = {"ema"},
                   .average_layout = AverageLayout::kDotless},
          .memory_remedies = {"--batch_size 64", "--num_register_tokens 0"},
          .flops_per_sample = 3 * dit_forward_flops(settings_.model),
          .num_sample_items = num_scales * items_per_scale(),
          .samples_averages = true,
          .num_scored_items = num_scored_};
}

DataSets DitRecipe::open_data(const TrainConfig& common) {
  check_dit_config(settings_.model);
  ImageSets sets =
      open_image_sets(common.data_path, settings_.model.image_size);
  // The run's settings keep it: sampling then needs no data.
  settings_.num_classes = classes_of(sets, settings_.num_classes);
  prepare_sampling(common);
  num_scored_ = common.score.num_images;
  return std::move(sets.data);
}

void DitRecipe::prepare_sampling(const TrainConfig& common) {
  if (!settings_.num_classes) {
    open_data(common);
    return;
  }
  check_dit_config(settings_.model);
  settings_.model.num_classes = *settings_.num_classes;
  check_image_sampling(settings_.sampling, settings_.model.num_classes);
}

std::shared_ptr<torch::nn::Module> DitRecipe::make_model() {
  model_ = std::make_shared<Dit>(settings_.model);
  return model_;
}

Loss DitRecipe::loss(const Batch& batch, SampleRandom& random) {
  const auto dtype = model_->dtype();
  const at::Tensor images = as_levels(batch[0], dtype);
  const at::Tensor is_dropped = random.uniform({}) < settings_.class_dropout;
  const FlowDraws draws = {
      .times = random.normal({}, dtype).sigmoid(),
      .noise = random.normal(images.sizes().slice(1), dtype),
      .labels = batch[1].masked_fill(is_dropped, settings_.model.num_classes)};
  return {.sum = flow_losses(*model_, images, draws).sum()};
}

FlowStart DitRecipe::start_of(const std::vector<int64_t>& classes,
                              const std::vector<double>& scales,
                              SampleRandom& random) const {
  const DitConfig& config = settings_.model;
  const at::Tensor noise = random.normal(
      {config.channels, config.image_size, config.image_size}, model_->dtype());
  return {.noise = noise,
          .labels = torch::tensor(classes, torch::kLong).to(noise.device()),
          .guidance = torch::tensor(scales).to(noise.options())};
}

// Scale by scale, class by class, copy by copy.
at::Tensor DitRecipe::sample(std::span<const int64_t> items,
                             SampleRandom& random) {
  std::vector<int64_t> classes;
  std::vector<double> scales;
  for (const int64_t item : items) {
    classes.push_back(
        class_of_item(settings_.sampling, settings_.model.num_classes, item));
    scales.push_back(settings_.cfg_scales[static_cast<size_t>(
        item / items_per_scale() %
        static_cast<int64_t>(settings_.cfg_scales.size()))]);
  }
  return sample_flow(*model_, start_of(classes, scales, random),
                     {.count = settings_.sample_steps});
}

at::Tensor DitRecipe::generate(std::span<const int64_t> items,
                               SampleRandom& random) {
  std::vector<int64_t> classes;
  for (const int64_t item : items) {
    classes.push_back(item % settings_.model.num_classes);
  }
  const std::vector<double> scales(items.size(), settings_.fid_cfg_scale);
  return sample_flow(*model_, start_of(classes, scales, random),
                     {.count = settings_.fid_steps, .max_frames = 2})
      .select(1, 1);
}

std::vector<OutputFile> DitRecipe::render(const at::Tensor& items) {
  std::vector<OutputFile> files;
  const std::vector<at::Tensor> parts = items.split(items_per_scale());
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string scale = scale_text(settings_.cfg_scales.at(i));
    const auto more =
        image_files({.name = "images/step{step}_cfg" + scale + "{weights}",
                     .title = "Images/cfg" + scale + "{weights}",
                     .trajectories = parts[i]},
                    settings_.sampling, settings_.model.num_classes);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

}  // namespace lockstep
