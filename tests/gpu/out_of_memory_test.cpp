// A GPU that is full in the middle of a training: the batch is halved, the
// losses stay.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "lockstep/engine/loop.h"
#include "lockstep/tensor/device.h"
#include "lockstep/tensor/stream_scope.h"
#include "support/messages.h"

namespace lockstep::testing {
namespace {

constexpr int64_t kSampleBytes = int64_t{512} << 20;
constexpr int64_t kBatch = 8;
constexpr int64_t kNumSteps = 60;

// Takes memory in proportion to its batch; in some steps, until the end of the
// next one, others take most of what is left.
class WideTask final : public Task {
 public:
  WideTask() {
    torch::manual_seed(1);
    net_ = torch::nn::Linear(4, 1);
    const at::Tensor x = torch::rand({kBatch * kNumSteps, 4});
    data_ = std::make_shared<TensorDataset>(
        std::vector<at::Tensor>{x, x.sum(1, /*keepdim=*/true) * 0.3});
  }

  DataSets data() const override { return {.train = data_}; }
  std::shared_ptr<torch::nn::Module> model() const override {
    return net_.ptr();
  }
  Loss loss(const Batch& batch, SampleRandom& /*random*/) override {
    if (step > last_scarce_step_ + 1) taken_.clear();
    if (batch.micro_batch == 0 && scarce_steps.erase(step) > 0) {
      last_scarce_step_ = step;
      take_memory(batch);
    }
    const at::Tensor work =
        torch::zeros({batch.size(), kSampleBytes / 4}, batch[0].options());
    const at::Tensor errors = net_->forward(batch[0]) - batch[1];
    return {.sum = (errors + work.select(1, 0).unsqueeze(1)).square().sum()};
  }

  int64_t step = 1;  // Under way.
  std::set<int64_t> scarce_steps = {};

 private:
  // Leaves room for half of the batch. What is free is found by trying: the
  // allocator's cache is shared with tensors that stay.
  void take_memory(const Batch& batch) {
    const auto options = batch[0].options().dtype(torch::kByte);
    try {
      for (;;) {
        taken_.push_back(
            torch::empty({batch.size() / 2 * kSampleBytes}, options));
      }
    } catch (const c10::OutOfMemoryError&) {
      ASSERT_FALSE(taken_.empty());
      taken_.pop_back();
    }
  }

  torch::nn::Linear net_{nullptr};
  int64_t last_scarce_step_ = 0;
  std::vector<at::Tensor> taken_;
  std::shared_ptr<const Dataset> data_;
};

class StepLosses final : public engine::Callback {
 public:
  explicit StepLosses(WideTask& task) : task_(task) {}
  void after_step(engine::TrainLoop& loop, const Step& /*step*/) override {
    losses.push_back(loop.learner().take_progress().loss);
    task_.step = loop.state().step + 1;
  }

  std::vector<double> losses;

 private:
  WideTask& task_;
};

struct WideRun {
  std::vector<double> losses;
  std::string warnings;
  int64_t micro_batch_size = 0;
  int64_t num_replays = 0;
  std::vector<int64_t> num_updates;  // One per average.
};

enum class Graphs { kOff, kOn };

WideRun train_wide_in(const World& world, const std::set<int64_t>& scarce_steps,
                      Graphs graphs) {
  const tensor::StreamScope stream(world.device());
  WideTask task;
  task.scarce_steps = scarce_steps;
  engine::Learner learner(task, world, {.optimization = {.ema_decay = {0.9}}});
  WideRun run;
  track::Console console(
      {}, {.err = [&](std::string_view text) { run.warnings += text; }});
  engine::TrainLoop loop(
      learner,
      StepLoader(task.data().train, world,
                 {.global_batch_size = kBatch, .micro_batch_size = kBatch}),
      world, console,
      {.num_steps = kNumSteps,
       .schedule = {.total_updates = kNumSteps},
       .base_lr = 1e-3,
       .cuda_graphs = {.enabled = graphs == Graphs::kOn},
       .on_out_of_memory = engine::OnOutOfMemory::kHalve});
  StepLosses losses(task);
  loop.run({}, {&losses});
  run.losses = losses.losses;
  run.micro_batch_size = loop.micro_batch_size();
  run.num_replays = loop.recorder().num_replays();
  for (const Ema& average : learner.averages()) {
    run.num_updates.push_back(average.num_updates());
  }
  return run;
}

WideRun train_wide(const std::set<int64_t>& scarce_steps, Graphs graphs) {
  const World world =
      World::from_environment({.device = DeviceChoice::kCuda}, {});
  WideRun run = train_wide_in(world, scarce_steps, graphs);
  // Else the processes of other tests find the GPU full.
  tensor::release_cached_memory(world.device());
  return run;
}

void expect_same_losses(const WideRun& actual, const WideRun& expected) {
  ASSERT_EQ(actual.losses.size(), static_cast<size_t>(kNumSteps));
  for (size_t i = 0; i < actual.losses.size(); ++i) {
    EXPECT_NEAR(actual.losses[i], expected.losses[i], 1e-6) << "step " << i + 1;
  }
  EXPECT_EQ(actual.num_updates, (std::vector<int64_t>{kNumSteps}));
}

TEST(GpuOutOfMemory, InSteps3And10And50ChangesNoLoss) {
  const WideRun whole = train_wide({}, Graphs::kOff);
  EXPECT_EQ(whole.warnings, "");
  const WideRun halved = train_wide({3, 10, 50}, Graphs::kOff);
  EXPECT_EQ(halved.micro_batch_size, 1);
  for (const char* text : {"in step 3: ", "in step 10: ", "in step 50: "}) {
    expect_in(halved.warnings, text);
  }
  expect_same_losses(halved, whole);
}

TEST(GpuOutOfMemory, StepsAreRecordedAgain) {
  const WideRun whole = train_wide({}, Graphs::kOn);
  EXPECT_GT(whole.num_replays, 0);
  const WideRun halved = train_wide({3, 10}, Graphs::kOn);
  EXPECT_EQ(halved.micro_batch_size, 2);
  EXPECT_GT(halved.num_replays, 0);
  expect_same_losses(halved, whole);
}

}  // namespace
}  // namespace lockstep::testing
