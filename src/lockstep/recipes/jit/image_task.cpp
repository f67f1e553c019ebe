#include "lockstep/recipes/jit/image_task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/diffusion/pixels.h"
#include "lockstep/recipes/images/grid.h"

namespace lockstep::recipes {
namespace {

constexpr int64_t kImageSteps = 50;  // From noise to a sample.

jit::JitImageConfig image_model_config(const JitSettings& settings,
                                       int64_t num_classes) {
  jit::JitImageConfig config = jit::jit_image_config(
      jit_variant(settings.shared), settings.shared.image_size, num_classes);
  config.attn_dropout = settings.images.attn_dropout;
  config.proj_dropout = settings.images.proj_dropout;
  return config;
}

}  // namespace

JitImageTask::JitImageTask(const JitSettings& settings, images::ImageSets sets,
                           int64_t num_scored)
    : ImageTask(std::move(sets), num_scored),
      shared_(settings.shared),
      settings_(settings.images),
      num_classes_(settings.images.num_classes.value()),
      model_(std::make_shared<jit::JitImage>(
          image_model_config(settings, num_classes_))) {}

TaskInfo JitImageTask::info() const {
  return {
      .subject = fmt::format("{} on images of {} classes", shared_.model,
                             num_classes_),
      .memory_remedies = {"--batch_size 16", "--gradient_accumulation_steps 2"},
      .flops_per_sample = 3 * jit::jit_image_forward_flops(model_->config())};
}

int64_t JitImageTask::num_items() const {
  return items_of_sampling(settings_.sampling, num_classes_);
}

Loss JitImageTask::loss(const Batch& batch, SampleRandom& random) {
  const auto dtype = model_->dtype();
  const at::Tensor images = diffusion::as_levels(batch[0], dtype);
  // In the paper's order: label, time, noise.
  const at::Tensor is_dropped = random.uniform({}) < settings_.label_drop_prob;
  const at::Tensor normal = random.normal({}, dtype);
  const jit::JitImageDraws draws = {
      .times = (settings_.p_mean + settings_.p_std * normal).sigmoid(),
      .noise = random.normal(images.sizes().slice(1), dtype),
      .labels = batch[1].masked_fill(is_dropped, num_classes_)};
  return {.sum =
              jit::jit_image_losses(*model_, images, draws, settings_.objective)
                  .sum()};
}

at::Tensor JitImageTask::make_images(const std::vector<int64_t>& classes,
                                     SampleRandom& random) {
  const jit::JitImageConfig& config = model_->config();
  const at::Tensor noise = random.normal(
      {config.channels, config.image_size, config.image_size}, model_->dtype());
  jit::JitSampling sampling = {
      .objective = settings_.objective,
      .method = settings_.sampling_method == "heun" ? jit::OdeMethod::kHeun
                                                    : jit::OdeMethod::kEuler,
      .num_steps = shared_.sample_steps.value_or(kImageSteps),
      .interval = settings_.interval};
  // No guidance at any time: half of the work is saved.
  if (settings_.cfg == 1) sampling.interval.high = 0;
  return diffusion::as_bytes(jit::sample_jit_images(
      *model_,
      {.noise = noise,
       .labels = torch::tensor(classes, torch::kLong).to(noise.device()),
       .guidance =
           torch::full({noise.size(0)}, settings_.cfg, noise.options())},
      sampling));
}

// Class by class, copy by copy.
at::Tensor JitImageTask::sample(std::span<const int64_t> items,
                                SampleRandom& random) {
  std::vector<int64_t> classes;
  for (const int64_t item : items) {
    classes.push_back(class_of_item(settings_.sampling, num_classes_, item));
  }
  return make_images(classes, random);
}

std::vector<OutputFile> JitImageTask::render(const at::Tensor& items) {
  const std::string scale = scale_text(settings_.cfg);
  return image_files({.name = "images/step{step}_cfg" + scale + "{weights}",
                      .title = "Images/cfg" + scale + "{weights}",
                      .trajectories = items.unsqueeze(1),
                      .class_names = class_names()},
                     settings_.sampling, num_classes_);
}

at::Tensor JitImageTask::generate(std::span<const int64_t> items,
                                  SampleRandom& random) {
  std::vector<int64_t> classes;
  for (const int64_t item : items) classes.push_back(item % num_classes_);
  return make_images(classes, random);
}

std::unique_ptr<Task> build_jit_images(const TrainConfig& common,
                                       Purpose purpose, JitSettings& settings) {
  JitImageSettings& own = settings.images;
  // Before the data, so that errors in the model are found early.
  jit::check_jit_image_config(
      image_model_config(settings, own.num_classes.value_or(10)));
  images::ImageSets sets;
  if (purpose != Purpose::kSample || !own.num_classes) {
    sets =
        images::open_image_sets(common.data_path, settings.shared.image_size);
    // Saved in the run's settings, so that sampling needs no data.
    own.num_classes = images::classes_of(sets, own.num_classes);
  }
  check_image_sampling(own.sampling, *own.num_classes);
  return std::make_unique<JitImageTask>(settings, std::move(sets),
                                        common.score.num_images);
}

}  // namespace lockstep::recipes
