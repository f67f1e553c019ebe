#include "lockstep/recipes/tiny/tiny.h"

#include <torch/torch.h>

#include "lockstep/data/image.h"
#include "lockstep/datasets/images/tiny_images.h"
#include "lockstep/error.h"
#include "lockstep/sampling.h"

namespace lockstep::recipes {
namespace {

constexpr int64_t kPixels = 16;
constexpr int64_t kSamplesPerClass = 4;
constexpr int kDreamSteps = 20;

// Two convolutions and a linear layer: 1,372 parameters at width 8.
class TinyNet : public torch::nn::Module {
 public:
  explicit TinyNet(const TinySettings& settings) {
    const int64_t width = settings.width;
    first = register_module(
        "first",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(1, width, 3).padding(1)));
    second = register_module(
        "second", torch::nn::Conv2d(
                      torch::nn::Conv2dOptions(width, width, 3).padding(1)));
    dropout = register_module("dropout", torch::nn::Dropout(settings.dropout));
    last = register_module(
        "last", torch::nn::Linear(width * 16, images::ImageData::kNumClasses));
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

DataSets open_tiny_sets(const TinySettings& settings) {
  DataSets data;
  data.train = std::make_shared<images::ImageData>(
      images::ImageConfig{.num_samples = settings.train_samples,
                          .size = kPixels,
                          .seed = 1,
                          .augment = settings.augment});
  if (settings.val_samples > 0) {
    data.validation = std::make_shared<images::ImageData>(images::ImageConfig{
        .num_samples = settings.val_samples, .size = kPixels, .seed = 2});
  }
  return data;
}

class TinyTask final : public Task, public Sampling {
 public:
  explicit TinyTask(const TinySettings& settings)
      : settings_(settings),
        data_(open_tiny_sets(settings)),
        net_(std::make_shared<TinyNet>(settings)) {}

  TaskInfo info() const override {
    return {.best_metric = "accuracy",
            .better = Better::kHigher,
            .memory_remedies = {"--batch_size 16", "--width 4"}};
  }
  DataSets data() const override { return data_; }
  std::shared_ptr<torch::nn::Module> model() const override { return net_; }
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;

  int64_t num_items() const override {
    return kSamplesPerClass * images::ImageData::kNumClasses;
  }
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;

 private:
  TinySettings settings_;
  DataSets data_;
  std::shared_ptr<TinyNet> net_;
};

Loss TinyTask::loss(const Batch& batch, SampleRandom& random) {
  const at::Tensor& images = batch[0];
  const at::Tensor noise =
      random.normal(images.sizes().slice(1), images.scalar_type());
  const at::Tensor logits = net_->forward(images + settings_.noise * noise);
  return {.sum = torch::nn::functional::cross_entropy(
              logits, batch[1],
              torch::nn::functional::CrossEntropyFuncOptions().reduction(
                  torch::kSum))};
}

void TinyTask::evaluate(const Batch& batch, SampleRandom& /*random*/,
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

// Samples of each class by gradient ascent of its logit from noise.
at::Tensor TinyTask::sample(std::span<const int64_t> items,
                            SampleRandom& random) {
  std::vector<int64_t> classes;
  for (const int64_t item : items) {
    classes.push_back(item % images::ImageData::kNumClasses);
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
std::vector<OutputFile> TinyTask::render(const at::Tensor& items) {
  const int64_t columns = items.size(0) / images::ImageData::kNumClasses;
  if (columns == 0) return {};
  const at::Tensor used =
      items.slice(0, 0, columns * images::ImageData::kNumClasses);
  const at::Tensor low = used.amin({1, 2, 3}, true);
  const at::Tensor high = used.amax({1, 2, 3}, true);
  const at::Tensor grid =
      ((used - low) / (high - low + 1e-8) * 255)
          .round()
          .to(torch::kByte)
          .view({columns, images::ImageData::kNumClasses, kPixels, kPixels})
          .permute({1, 2, 0, 3})
          .contiguous();
  data::Image image{
      .width = static_cast<int>(columns * kPixels),
      .height = static_cast<int>(images::ImageData::kNumClasses * kPixels),
      .channels = 1};
  const auto* begin = grid.const_data_ptr<uint8_t>();
  image.pixels.assign(begin, begin + grid.numel());
  return {
      {.name = "samples/step_{step}.png", .bytes = data::encode_png(image)}};
}

}  // namespace

void TinyRecipe::describe(Settings& settings) {
  settings.common.data_path = "builtin:bars";
  settings.common.save_dir = "runs/tiny";
  settings.common.epochs = 5;
  settings.common.optimization.lr = 3e-3;
  Options& options = settings.options;
  options.add("width", settings_.width, "channels of the network",
              {.minimum = 1, .group = "Tiny"});
  options.add("dropout", settings_.dropout, "probability of dropout",
              {.minimum = 0, .maximum = 0.99, .group = "Tiny"});
  options.add("augment", settings_.augment, "shift and brighten the images",
              {.group = "Tiny"});
  options.add("noise", settings_.noise,
              "deviation of the noise that the loss adds to the images",
              {.minimum = 0, .group = "Tiny"});
  options.add("train_samples", settings_.train_samples,
              "images to train on, generated", {.minimum = 0, .group = "Tiny"});
  options.add("val_samples", settings_.val_samples,
              "images to validate on, generated",
              {.minimum = 0, .group = "Tiny"});
}

std::unique_ptr<Task> TinyRecipe::build(const Settings& settings,
                                        Purpose /*purpose*/) {
  const std::string& path = settings.common.data_path;
  if (path != "builtin:bars") {
    throw ConfigError("--data_path " + path +
                      ": the recipe tiny has only generated data; use "
                      "--data_path builtin:bars");
  }
  return std::make_unique<TinyTask>(settings_);
}

}  // namespace lockstep::recipes
