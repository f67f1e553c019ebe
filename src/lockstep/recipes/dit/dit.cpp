#include "lockstep/recipes/dit/dit.h"

#include <torch/torch.h>

#include <algorithm>

#include "lockstep/recipes/dit/flow.h"
#include "lockstep/recipes/pictures/grid.h"
#include "lockstep/recipes/pictures/picture_sets.h"
#include "lockstep/recipes/pictures/pixels.h"

namespace lockstep {
namespace {

constexpr int64_t kCopies = 10;      // Of a class, in a row of the grid.
constexpr int64_t kMaxClasses = 10;  // Rows.

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
  options.add("img_size", model.image_size, "pixels of a picture's side", size);
  options.add("class_dropout", settings_.class_dropout,
              "how often a picture is shown without its class",
              {.minimum = 0, .maximum = 1, .group = "DiT"});
  options.add("cfg_scales", settings_.cfg_scales,
              "weights of guidance; a sampling shows all classes with each",
              {.minimum = 0, .group = "DiT"});
  options.add("sample_steps", settings_.sample_steps,
              "steps from noise to a picture", size);
}

int64_t DitRecipe::num_shown_classes() const {
  return std::min(settings_.model.num_classes, kMaxClasses);
}

int64_t DitRecipe::items_per_scale() const {
  return num_shown_classes() * kCopies;
}

RecipeFacts DitRecipe::facts() const {
  const auto num_scales = static_cast<int64_t>(settings_.cfg_scales.size());
  return {.name = "dit",
          .summary = "pictures by class from noise: DiT and rectified flow",
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
          .samples_averages = true};
}

DataSets DitRecipe::open_data(const TrainConfig& common) {
  check_dit_config(settings_.model);
  PictureSets sets =
      open_picture_sets(common.data_path, settings_.model.image_size);
  settings_.model.num_classes = sets.num_classes;
  return std::move(sets.data);
}

std::shared_ptr<torch::nn::Module> DitRecipe::make_model() {
  model_ = std::make_shared<Dit>(settings_.model);
  return model_;
}

Loss DitRecipe::loss(const Batch& batch, SampleRandom& random) {
  const auto dtype = model_->dtype();
  const at::Tensor pictures = as_levels(batch[0], dtype);
  const at::Tensor is_dropped = random.uniform({}) < settings_.class_dropout;
  const FlowDraws draws = {
      .times = random.normal({}, dtype).sigmoid(),
      .noise = random.normal(pictures.sizes().slice(1), dtype),
      .labels = batch[1].masked_fill(is_dropped, settings_.model.num_classes)};
  return {.sum = flow_losses(*model_, pictures, draws).sum()};
}

// Scale by scale, class by class, copy by copy.
at::Tensor DitRecipe::sample(std::span<const int64_t> items,
                             SampleRandom& random) {
  std::vector<int64_t> classes;
  std::vector<double> scales;
  for (const int64_t item : items) {
    classes.push_back(item / kCopies % num_shown_classes());
    scales.push_back(settings_.cfg_scales[static_cast<size_t>(
        item / items_per_scale() %
        static_cast<int64_t>(settings_.cfg_scales.size()))]);
  }
  const DitConfig& config = settings_.model;
  const at::Tensor noise = random.normal(
      {config.channels, config.image_size, config.image_size}, model_->dtype());
  return sample_flow(
      *model_,
      {.noise = noise,
       .labels = torch::tensor(classes, torch::kLong).to(noise.device()),
       .guidance = torch::tensor(scales).to(noise.options())},
      {.count = settings_.sample_steps});
}

std::vector<OutputFile> DitRecipe::render(const at::Tensor& items) {
  std::vector<OutputFile> files;
  const std::vector<at::Tensor> parts = items.split(items_per_scale());
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string scale = scale_text(settings_.cfg_scales.at(i));
    const std::string name = "images/step{step}_cfg" + scale + "{weights}";
    const Grid grid = make_grid(parts[i], kCopies);
    files.push_back({.name = name + ".png",
                     .bytes = last_picture(grid),
                     .title = "Images/cfg" + scale + "{weights}"});
    files.push_back({.name = name + ".gif",
                     .bytes = film(grid),
                     .title = "Gifs/cfg" + scale + "{weights}"});
  }
  return files;
}

}  // namespace lockstep
