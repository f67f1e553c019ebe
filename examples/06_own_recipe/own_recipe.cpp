// A recipe of your own: all that lockstep train does, for your model and data.
//
//   lockstep run --nproc-per-node 2 06_own_recipe --epochs 3
//
// A network learns to tell points inside a ring from those outside. Rank 0
// tells of its progress; the last validation has an accuracy above 0.9, and
// runs/ring holds log, config, records and checkpoints.
#include <torch/torch.h>

#include <cmath>

#include "lockstep/train.h"

using namespace lockstep;

// Sample i is a point of the square and whether it lies in the ring.
class RingPoints final : public Dataset {
 public:
  RingPoints(int64_t size, uint64_t seed) : size_(size), seed_(seed) {}

  int64_t size() const override { return size_; }

  Sample get(int64_t index, uint64_t /*seed*/) const override {
    RandomStream draw(sample_seed(seed_, /*epoch=*/0, index));
    const double x = 2 * draw.uniform() - 1;
    const double y = 2 * draw.uniform() - 1;
    const double radius = std::hypot(x, y);
    const int64_t is_inside = radius > 0.4 && radius < 0.8 ? 1 : 0;
    return {torch::tensor({x, y}, torch::kFloat), torch::tensor(is_inside)};
  }

 private:
  int64_t size_;
  uint64_t seed_;
};

class RingRecipe final : public Recipe {
 public:
  void describe(Options& options, TrainConfig& common) override {
    common.data_path = "builtin:ring";
    common.save_dir = "runs/ring";
    common.epochs = 10;
    common.optimization.lr = 1e-2;
    options.add("width", width_, "neurons of a hidden layer", {.minimum = 1});
    options.add("noise", noise_, "how far a step moves the points");
  }

  TaskInfo facts() const override {
    return {.name = "ring",
            .summary = "tells points inside a ring from those outside",
            .best_metric = "accuracy",
            .better = Better::kHigher,
            .memory_remedies = {"--batch_size 16", "--width 32"}};
  }

  DataSets open_data(const TrainConfig& common) override {
    if (common.data_path != "builtin:ring") {
      throw ConfigError("--data_path must be builtin:ring");
    }
    return {.train = std::make_shared<RingPoints>(4000, /*seed=*/1),
            .validation = std::make_shared<RingPoints>(1001, /*seed=*/2)};
  }

  std::shared_ptr<torch::nn::Module> make_model() override {
    net_ =
        torch::nn::Sequential(torch::nn::Linear(2, width_), torch::nn::ReLU(),
                              torch::nn::Linear(width_, width_),
                              torch::nn::ReLU(), torch::nn::Linear(width_, 2));
    return net_.ptr();
  }

  Loss loss(const Batch& batch, SampleRandom& random) override {
    const auto noise = random.normal({2}, batch[0].scalar_type());
    const auto logits = net_->forward(batch[0] + noise_ * noise);
    return {.sum = torch::cross_entropy_loss(logits, batch[1], {},
                                             at::Reduction::Sum)};
  }

  void evaluate(const Batch& batch, SampleRandom&, MetricSums& sums) override {
    const auto is_right = net_->forward(batch[0]).argmax(1).eq(batch[1]);
    sums.add("accuracy", is_right, static_cast<double>(batch.size()));
  }

 private:
  int64_t width_ = 64;
  double noise_ = 0.01;
  torch::nn::Sequential net_{nullptr};
};

int main(int count, char** values) {
  RingRecipe recipe;
  return recipe_main(count, values, recipe);
}
