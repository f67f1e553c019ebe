// A recipe of your own: all that lockstep train does, for your model and data.
//
//   lockstep run --nproc-per-node 2 06_own_recipe --epochs 3
//
// A network learns to tell points inside a ring from those outside. Rank 0 logs
// its progress; the last validation has an accuracy above 0.9, and runs/ring
// holds log, config, records and checkpoints.
#include <torch/torch.h>

#include "lockstep/train.h"

using namespace lockstep;

// Points of a square, and whether each lies in the ring.
std::shared_ptr<Dataset> ring_points(int64_t size, uint64_t seed) {
  const auto draws =
      torch::rand({size, 2}, at::detail::createCPUGenerator(seed));
  const auto points = 2 * draws - 1;
  const auto radius = points.norm(2, /*dim=*/1);
  const auto is_inside = (radius > 0.4).logical_and(radius < 0.8);
  return std::make_shared<TensorDataset>(
      std::vector<at::Tensor>{points, is_inside.to(torch::kLong)});
}

class RingTask final : public Task {
 public:
  RingTask(int64_t width, double noise)
      : noise_(noise),
        net_(torch::nn::Linear(2, width), torch::nn::ReLU(),
             torch::nn::Linear(width, width), torch::nn::ReLU(),
             torch::nn::Linear(width, 2)) {}

  TaskInfo info() const override {
    return {.best_metric = "accuracy", .better = Better::kHigher};
  }

  DataSets data() const override {
    return {.train = ring_points(4000, /*seed=*/1),
            .validation = ring_points(1001, /*seed=*/2)};
  }

  std::shared_ptr<torch::nn::Module> model() const override {
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
  double noise_;
  torch::nn::Sequential net_;
};

class RingRecipe final : public Recipe {
 public:
  std::string name() const override { return "ring"; }
  std::string summary() const override { return "points inside a ring"; }

  void describe(Settings& settings) override {
    settings.common.data_path = "builtin:ring";
    settings.common.save_dir = "runs/ring";
    settings.common.epochs = 10;
    settings.common.optimization.lr = 1e-2;
    settings.options.add("width", width_, "neurons of a hidden layer");
    settings.options.add("noise", noise_, "how far a step moves the points");
  }

  std::unique_ptr<Task> build(const Settings& settings, Purpose) override {
    if (settings.common.data_path != "builtin:ring") {
      throw ConfigError("--data_path must be builtin:ring");
    }
    return std::make_unique<RingTask>(width_, noise_);
  }

 private:
  int64_t width_ = 64;
  double noise_ = 0.01;
};

int main(int count, char** values) {
  RingRecipe recipe;
  return recipe_main(count, values, recipe);
}
