// A whole training of your own: data set, loader, sampler, accumulation, exact
// evaluation.
//
//   lockstep run --nproc-per-node 2 03_own_training
//
// A two-layer network learns to tell points inside a ring from those outside.
// Rank 0 prints one line per epoch; the last accuracy is above 0.9.
#include <torch/torch.h>

#include <cmath>
#include <iomanip>
#include <iostream>

#include "lockstep/lockstep.h"

namespace {

// Sample i is a point in the square and whether it lies in the ring. Everything
// random about it comes from the seed that the loader gives: equal on any
// number of ranks and threads.
class Ring final : public lockstep::Dataset {
 public:
  explicit Ring(int64_t num_points, uint64_t salt)
      : num_points_(num_points), salt_(salt) {}

  int64_t size() const override { return num_points_; }

  lockstep::Sample get(int64_t index, uint64_t seed) const override {
    auto position = at::detail::createCPUGenerator(salt_ + index);
    auto noise = at::detail::createCPUGenerator(seed);
    const auto point = torch::rand({2}, position) * 2 - 1;
    const float radius = point.norm().item<float>();
    const int64_t label = radius > 0.4F && radius < 0.8F;
    return {point + 0.01 * torch::randn({2}, noise), torch::tensor(label)};
  }

 private:
  int64_t num_points_;
  uint64_t salt_;
};

torch::nn::Sequential make_net() {
  return torch::nn::Sequential(torch::nn::Linear(2, 64), torch::nn::ReLU(),
                               torch::nn::Linear(64, 64), torch::nn::ReLU(),
                               torch::nn::Linear(64, 2));
}

// Every sample is counted once, however many ranks there are.
double accuracy(torch::nn::Sequential& net, lockstep::Loader& loader,
                const lockstep::World& world) {
  const torch::NoGradGuard no_grad;
  int64_t correct = 0;
  int64_t count = 0;
  auto epoch = loader.epoch(0);
  for (const lockstep::Batch& batch : epoch) {
    correct +=
        net->forward(batch[0]).argmax(1).eq(batch[1]).sum().item<int64_t>();
    count += batch.size();
  }
  return static_cast<double>(world.reduce(correct, lockstep::ReduceOp::kSum)) /
         static_cast<double>(world.reduce(count, lockstep::ReduceOp::kSum));
}

void train(const lockstep::World& world) {
  constexpr int64_t kEpochs = 15;
  torch::manual_seed(7);
  auto net = make_net();
  net->to(world.device());
  lockstep::DistributedDataParallel ddp(net, world);
  torch::optim::SGD optimizer(
      net->parameters(), torch::optim::SGDOptions(/*lr=*/0.2).momentum(0.9));
  // Every step takes the same 80 samples on any number of ranks.
  const lockstep::StepLoader train_data(std::make_shared<Ring>(4000, 1), world,
                                        {.global_batch_size = 80,
                                         .micro_batch_size = 20,
                                         .workers = 2,
                                         .seed = 7});
  lockstep::Loader test_data(
      std::make_shared<Ring>(1001, 100000), world,
      {.batch_size = 50, .shuffle = false, .uneven = lockstep::Uneven::kExact});

  double loss_sum = 0;
  auto batches = train_data.batches();
  for (const lockstep::Batch& batch : batches) {
    const lockstep::Step& step = batch.step;
    const auto quiet = ddp.no_sync(!batch.ends_step());
    auto loss = torch::nn::functional::cross_entropy(
        ddp(batch[0]), batch[1],
        torch::nn::functional::CrossEntropyFuncOptions().reduction(
            torch::kSum));
    if (batch.is_filler) loss = loss * 0;  // This rank has no samples left.
    // DDP averages over ranks: this is the gradient of the step's mean loss.
    (loss * world.size() / step.num_samples).backward();
    loss_sum += loss.item<double>();
    if (!batch.ends_step()) continue;
    optimizer.step();
    net->zero_grad();
    if (!step.ends_epoch()) continue;

    const double mean_loss =
        world.reduce(loss_sum, lockstep::ReduceOp::kSum) / 4000;
    loss_sum = 0;
    const double test_accuracy = accuracy(net, test_data, world);
    if (world.is_main()) {
      std::cout << "epoch " << step.begin.epoch << " loss "
                << std::setprecision(4) << mean_loss << " accuracy "
                << test_accuracy << std::endl;
    }
    if (step.next.epoch == kEpochs) break;
  }
}

}  // namespace

int main() {
  return lockstep::run_program(
      [] { train(lockstep::World::from_environment()); });
}
