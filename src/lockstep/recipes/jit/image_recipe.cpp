#include "lockstep/recipes/jit/image_recipe.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/datasets/images/image_sets.h"
#include "lockstep/diffusion/pixels.h"
#include "lockstep/fid/image_score.h"
#include "lockstep/recipes/images/grid.h"

namespace lockstep {
namespace {

constexpr const char* kGroup = "JiT, images";
constexpr int64_t kSampleSteps = 50;

}  // namespace

void JitImageRecipe::describe(Options& options, TrainConfig& common) {
  describe_model(options);
  describe_flow(options);
  describe_image_sampling(options, kGroup, settings_.sampling);
  describe_score(options, common.score);
}

void JitImageRecipe::describe_model(Options& options) {
  const OptionDetails share = {.minimum = 0, .maximum = 1, .group = kGroup};
  options.add("attn_dropout", settings_.attn_dropout,
              "of the weights of attention, in the middle half of the blocks",
              share);
  options.add("proj_dropout", settings_.proj_dropout,
              "of what attention and MLP give, in the middle half of the "
              "blocks",
              share);
  options.add("num_classes", settings_.num_classes,
              "classes of images; unset: as many as the data have",
              {.aliases = {"class_num"}, .minimum = 1, .group = kGroup});
}

void JitImageRecipe::describe_flow(Options& options) {
  const OptionDetails share = {.minimum = 0, .maximum = 1, .group = kGroup};
  const OptionDetails number = {.minimum = 0, .group = kGroup};
  options.add("P_mean", settings_.p_mean,
              "times of training are sigmoid(P_mean + P_std * n), n normal",
              {.group = kGroup});
  options.add("P_std", settings_.p_std, "see P_mean", number);
  options.add("noise_scale", settings_.objective.noise_scale,
              "deviation of the noise; the paper's is 1 at 256 pixels and 2 at "
              "512",
              number);
  options.add("t_eps", settings_.objective.t_eps,
              "velocities are divided by no less than this",
              {.minimum = 1e-6, .maximum = 1, .group = kGroup});
  options.add("label_drop_prob", settings_.label_drop_prob,
              "how often a image is shown without its class", share);
  options.add("sampling_method", settings_.sampling_method,
              "steps from noise to a image; heun evaluates twice in each",
              {.choices = {"heun", "euler"}, .group = kGroup});
  options.add("cfg", settings_.cfg,
              "weight of guidance; 1: none. The paper's: 2.9 for B, 2.4 for L, "
              "2.2 for H",
              number);
  options.add("interval_min", settings_.interval.low,
              "guidance begins behind this time; 0: at once", share);
  options.add("interval_max", settings_.interval.high,
              "guidance ends at this time; 1 is the image", share);
}

void JitImageRecipe::resolve_defaults(const Options& options,
                                      TrainConfig& common) {
  const auto settle = [&](std::string_view name, auto& setting, auto value) {
    if (!options.was_given(name)) setting = std::move(value);
  };
  OptimizationConfig& optimization = common.optimization;
  settle("lr_schedule", optimization.lr_schedule, "constant");
  settle("beta2", optimization.beta2, 0.95);
  settle("weight_decay", optimization.weight_decay, 0.0);
  settle("max_grad_norm", optimization.max_grad_norm, 0.0);
  settle("ema_decay", optimization.ema_decay,
         std::vector<double>{0.9999, 0.9996});
  settle("drop_last", common.drop_last, true);
  if (!options.was_given("use_amp")) {
    settle("precision", common.precision, "auto");
  }
}

JitImageConfig JitImageRecipe::model_config() const {
  JitVariant variant = parse_jit_variant(shared_.model);
  variant.width = shared_.width.value_or(variant.width);
  variant.depth = shared_.depth.value_or(variant.depth);
  variant.num_heads = shared_.num_heads.value_or(variant.num_heads);
  JitImageConfig config =
      jit_image_config(variant, shared_.image_size, num_classes_);
  config.attn_dropout = settings_.attn_dropout;
  config.proj_dropout = settings_.proj_dropout;
  return config;
}

TaskInfo JitImageRecipe::facts() const {
  return {
      .name = "jit",
      .summary = "images by class from noise: JiT",
      .subject = fmt::format("{} on images of {} classes", shared_.model,
                             num_classes_),
      .files = {.checkpoint = "checkpoint_epoch_{epoch}.pth",
                .best = "best_model.pth"},
      .keys = {.model = {{.key = "model"}},
               .step = "",
               .optimizer = "optimizer",
               .scheduler = "",
               .settings = "args",
               .averages = {"model_ema1", "model_ema2"}},
      .memory_remedies = {"--batch_size 16", "--gradient_accumulation_steps 2"},
      .flops_per_sample = 3 * jit_image_forward_flops(model_config()),
      .num_sample_items = items_of_sampling(settings_.sampling, num_classes_),
      .samples_averages = true,
      .num_scored_items = num_scored_};
}

DataSets JitImageRecipe::open_data(const TrainConfig& common) {
  check_jit_image_config(model_config());
  ImageSets sets = open_image_sets(common.data_path, shared_.image_size);
  // The run's settings keep it: sampling then needs no data.
  settings_.num_classes = classes_of(sets, settings_.num_classes);
  prepare_sampling(common);
  num_scored_ = common.score.num_images;
  return std::move(sets.data);
}

void JitImageRecipe::prepare_sampling(const TrainConfig& common) {
  if (!settings_.num_classes) {
    open_data(common);
    return;
  }
  check_jit_image_config(model_config());
  num_classes_ = *settings_.num_classes;
  check_image_sampling(settings_.sampling, num_classes_);
}

std::shared_ptr<torch::nn::Module> JitImageRecipe::make_model() {
  model_ = std::make_shared<JitImage>(model_config());
  return model_;
}

Loss JitImageRecipe::loss(const Batch& batch, SampleRandom& random) {
  const auto dtype = model_->dtype();
  const at::Tensor images = as_levels(batch[0], dtype);
  // In the paper's order: label, time, noise.
  const at::Tensor is_dropped = random.uniform({}) < settings_.label_drop_prob;
  const at::Tensor normal = random.normal({}, dtype);
  const JitImageDraws draws = {
      .times = (settings_.p_mean + settings_.p_std * normal).sigmoid(),
      .noise = random.normal(images.sizes().slice(1), dtype),
      .labels = batch[1].masked_fill(is_dropped, num_classes_)};
  return {
      .sum =
          jit_image_losses(*model_, images, draws, settings_.objective).sum()};
}

at::Tensor JitImageRecipe::make_images(const std::vector<int64_t>& classes,
                                       SampleRandom& random) {
  const JitImageConfig& config = model_->config();
  const at::Tensor noise = random.normal(
      {config.channels, config.image_size, config.image_size}, model_->dtype());
  JitSampling sampling = {
      .objective = settings_.objective,
      .method = settings_.sampling_method == "heun" ? OdeMethod::kHeun
                                                    : OdeMethod::kEuler,
      .num_steps = shared_.sample_steps.value_or(kSampleSteps),
      .interval = settings_.interval};
  // At no time: half of the work is saved.
  if (settings_.cfg == 1) sampling.interval.high = 0;
  return as_bytes(sample_jit_images(
      *model_,
      {.noise = noise,
       .labels = torch::tensor(classes, torch::kLong).to(noise.device()),
       .guidance =
           torch::full({noise.size(0)}, settings_.cfg, noise.options())},
      sampling));
}

// Class by class, copy by copy.
at::Tensor JitImageRecipe::sample(std::span<const int64_t> items,
                                  SampleRandom& random) {
  std::vector<int64_t> classes;
  for (const int64_t item : items) {
    classes.push_back(class_of_item(settings_.sampling, num_classes_, item));
  }
  return make_images(classes, random);
}

std::vector<OutputFile> JitImageRecipe::render(const at::Tensor& items) {
  const std::string scale = scale_text(settings_.cfg);
  return image_files({.name = "images/step{step}_cfg" + scale + "{weights}",
                      .title = "Images/cfg" + scale + "{weights}",
                      .trajectories = items.unsqueeze(1)},
                     settings_.sampling, num_classes_);
}

at::Tensor JitImageRecipe::generate(std::span<const int64_t> items,
                                    SampleRandom& random) {
  std::vector<int64_t> classes;
  for (const int64_t item : items) classes.push_back(item % num_classes_);
  return make_images(classes, random);
}

}  // namespace lockstep
