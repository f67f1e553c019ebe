#include "lockstep/recipes/tiny/tiny.h"

#include <torch/torch.h>

#include "lockstep/data/image.h"
#include "lockstep/datasets/images/tiny_images.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr int64_t kPixels = 16;
constexpr int64_t kSamplesPerClass = 4;
constexpr int kDreamSteps = 20;

}  // namespace

// Two convolutions and a linear layer: 1,372 parameters at width 8.
class TinyNet : public torch::nn::Module {
 public:
  explicit TinyNet(const TinyConfig& config) {
    const int64_t width = config.width;
    first = register_module(
        "first",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(1, width, 3).padding(1)));
    second = register_module(
        "second", torch::nn::Conv2d(
                      torch::nn::Conv2dOptions(width, width, 3).padding(1)));
    dropout = register_module("dropout", torch::nn::Dropout(config.dropout));
    last = register_module(
        "last", torch::nn::Linear(width * 16, ImageData::kNumClasses));
  }

  at::Tensor forward(at::Tensor x) {
    x = torch::max_pool2d(torch::relu(first(x)), 2);
    x = torch::max_pool2d(torch::relu(second(x)), 2);
    return last(dropout(x.flatten(1)));
  }

  torch::nn::Conv2d first{nullptr};
  torch::nn::Conv2d second{nullptr};
  torch::nn::Dropout dropout{nullptr};
  torch::nn::Linear last{nullptr};
};

void TinyRecipe::describe(Options& options, TrainConfig& common) {
  common.data_path = "builtin:bars";
  common.save_dir = "runs/tiny";
  common.epochs = 5;
  common.optimization.lr = 3e-3;
  options.add("width", config_.width, "channels of the network",
              {.minimum = 1, .group = "Tiny"});
  options.add("dropout", config_.dropout, "probability of dropout",
              {.minimum = 0, .maximum = 0.99, .group = "Tiny"});
  options.add("augment", config_.augment, "shift and brighten the images",
              {.group = "Tiny"});
  options.add("noise", config_.noise,
              "deviation of the noise that the loss adds to the images",
              {.minimum = 0, .group = "Tiny"});
  options.add("train_samples", config_.train_samples,
              "images to train on, generated", {.minimum = 0, .group = "Tiny"});
  options.add("val_samples", config_.val_samples,
              "images to validate on, generated",
              {.minimum = 0, .group = "Tiny"});
}

TaskInfo TinyRecipe::facts() const {
  return {.name = "tiny",
          .summary = "image classifier on generated images, for a first look",
          .best_metric = "accuracy",
          .better = Better::kHigher,
          .memory_remedies = {"--batch_size 16", "--width 4"},
          .num_sample_items = kSamplesPerClass * ImageData::kNumClasses};
}

DataSets TinyRecipe::open_data(const TrainConfig& common) {
  if (common.data_path != "builtin:bars") {
    throw ConfigError("--data_path " + common.data_path +
                      ": the recipe tiny has only generated data; use "
                      "--data_path builtin:bars");
  }
  DataSets data;
  data.train = std::make_shared<ImageData>(
      ImageConfig{.num_samples = config_.train_samples,
                  .size = kPixels,
                  .seed = 1,
                  .augment = config_.augment});
  if (config_.val_samples > 0) {
    data.validation = std::make_shared<ImageData>(ImageConfig{
        .num_samples = config_.val_samples, .size = kPixels, .seed = 2});
  }
  return data;
}

std::shared_ptr<torch::nn::Module> TinyRecipe::make_model() {
  net_ = std::make_shared<TinyNet>(config_);
  return net_;
}

Loss TinyRecipe::loss(const Batch& batch, SampleRandom& random) {
  const at::Tensor& images = batch[0];
  const at::Tensor noise =
      random.normal(images.sizes().slice(1), images.scalar_type());
  const at::Tensor logits = net_->forward(images + config_.noise * noise);
  return {.sum = torch::nn::functional::cross_entropy(
              logits, batch[1],
              torch::nn::functional::CrossEntropyFuncOptions().reduction(
                  torch::kSum))};
}

void TinyRecipe::evaluate(const Batch& batch, SampleRandom& /*random*/,
                          MetricSums& sums) {
  const at::Tensor logits = net_->forward(batch[0]);
  const auto count = static_cast<double>(batch.size());
  sums.add("loss",
           torch::nn::functional::cross_entropy(
               logits, batch[1],
               torch::nn::functional::CrossEntropyFuncOptions().reduction(
                   torch::kNone)),
           count);
  sums.add("accuracy", logits.argmax(1).eq(batch[1]), count);
}

// What the network takes for each class: noise that climbs its logit.
at::Tensor TinyRecipe::sample(std::span<const int64_t> items,
                              SampleRandom& random) {
  std::vector<int64_t> classes;
  for (const int64_t item : items) {
    classes.push_back(item % ImageData::kNumClasses);
  }
  const auto weights = net_->first->weight;
  const at::Tensor labels =
      torch::tensor(classes, torch::kLong).to(weights.device());
  at::Tensor images =
      0.3 * random.normal({1, kPixels, kPixels}, weights.scalar_type());
  const torch::AutoGradMode with_gradients(true);
  for (int step = 0; step < kDreamSteps; ++step) {
    images = images.detach().requires_grad_();
    const at::Tensor wanted =
        net_->forward(images).gather(1, labels.unsqueeze(1)).sum();
    // Smoothed: single pixels would win over the shape.
    const at::Tensor slope =
        torch::avg_pool2d(torch::autograd::grad({wanted}, {images})[0], 5,
                          /*stride=*/1, /*padding=*/2);
    const at::Tensor size = slope.flatten(1).norm(2, 1).view({-1, 1, 1, 1});
    images = images + slope / (size + 1e-8);
  }
  return images.detach().to(torch::kFloat);
}

// One row per class.
std::vector<OutputFile> TinyRecipe::render(const at::Tensor& items) {
  const int64_t columns = items.size(0) / ImageData::kNumClasses;
  if (columns == 0) return {};
  const at::Tensor used = items.slice(0, 0, columns * ImageData::kNumClasses);
  const at::Tensor low = used.amin({1, 2, 3}, true);
  const at::Tensor high = used.amax({1, 2, 3}, true);
  const at::Tensor grid =
      ((used - low) / (high - low + 1e-8) * 255)
          .round()
          .to(torch::kByte)
          .view({columns, ImageData::kNumClasses, kPixels, kPixels})
          .permute({1, 2, 0, 3})
          .contiguous();
  Image image{.width = static_cast<int>(columns * kPixels),
              .height = static_cast<int>(ImageData::kNumClasses * kPixels),
              .channels = 1};
  const auto* begin = grid.const_data_ptr<uint8_t>();
  image.pixels.assign(begin, begin + grid.numel());
  return {{.name = "samples/step_{step}.png", .bytes = encode_png(image)}};
}

}  // namespace lockstep
