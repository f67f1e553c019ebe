#include "lockstep/recipes/dit/dit_task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/diffusion/pixels.h"
#include "lockstep/recipes/images/grid.h"

namespace lockstep::recipes {

DitTask::DitTask(const DitSettings& settings, images::ImageSets sets,
                 int64_t num_scored)
    : ImageTask(std::move(sets), num_scored),
      settings_(settings),
      model_(std::make_shared<dit::Dit>(settings.model)) {}

TaskInfo DitTask::info() const {
  return {.subject = fmt::format("DiT on images of {} classes",
                                 settings_.model.num_classes),
          .memory_remedies = {"--batch_size 64", "--num_register_tokens 0"},
          .flops_per_sample = 3 * dit::dit_forward_flops(settings_.model)};
}

int64_t DitTask::items_per_scale() const {
  return items_of_sampling(settings_.sampling, settings_.model.num_classes);
}

int64_t DitTask::num_items() const {
  return std::ssize(settings_.cfg_scales) * items_per_scale();
}

Loss DitTask::loss(const Batch& batch, SampleRandom& random) {
  const auto dtype = model_->dtype();
  const at::Tensor images = diffusion::as_levels(batch[0], dtype);
  const at::Tensor is_dropped = random.uniform({}) < settings_.class_dropout;
  const dit::FlowDraws draws = {
      .times = random.normal({}, dtype).sigmoid(),
      .noise = random.normal(images.sizes().slice(1), dtype),
      .labels = batch[1].masked_fill(is_dropped, settings_.model.num_classes)};
  return {.sum = dit::flow_losses(*model_, images, draws).sum()};
}

dit::FlowStart DitTask::start_of(const std::vector<int64_t>& classes,
                                 const std::vector<double>& scales,
                                 SampleRandom& random) const {
  const dit::DitConfig& config = settings_.model;
  const at::Tensor noise = random.normal(
      {config.channels, config.image_size, config.image_size}, model_->dtype());
  return {.noise = noise,
          .labels = torch::tensor(classes, torch::kLong).to(noise.device()),
          .guidance = torch::tensor(scales).to(noise.options())};
}

// Scale by scale, class by class, copy by copy.
at::Tensor DitTask::sample(std::span<const int64_t> items,
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
  return dit::sample_flow(*model_, start_of(classes, scales, random),
                          {.count = settings_.sample_steps});
}

at::Tensor DitTask::generate(std::span<const int64_t> items,
                             SampleRandom& random) {
  std::vector<int64_t> classes;
  for (const int64_t item : items) {
    classes.push_back(item % settings_.model.num_classes);
  }
  const std::vector<double> scales(items.size(), settings_.fid_cfg_scale);
  return dit::sample_flow(*model_, start_of(classes, scales, random),
                          {.count = settings_.fid_steps, .max_frames = 2})
      .select(1, 1);
}

std::vector<OutputFile> DitTask::render(const at::Tensor& items) {
  std::vector<OutputFile> files;
  const std::vector<at::Tensor> parts = items.split(items_per_scale());
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string scale = scale_text(settings_.cfg_scales.at(i));
    const auto more =
        image_files({.name = "images/step{step}_cfg" + scale + "{weights}",
                     .title = "Images/cfg" + scale + "{weights}",
                     .trajectories = parts[i],
                     .class_names = class_names()},
                    settings_.sampling, settings_.model.num_classes);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

}  // namespace lockstep::recipes
