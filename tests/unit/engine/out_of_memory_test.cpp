#include "lockstep/engine/out_of_memory.h"

#include <gtest/gtest.h>

#include "lockstep/engine/loop.h"
#include "lockstep/error.h"
#include "support/messages.h"
#include "unit/engine/line_task.h"

namespace lockstep {
namespace {

using engine::BatchSize;
using engine::OnOutOfMemory;

TEST(Halving, KeepsTheSamplesOfAStep) {
  for (const int64_t batch : {2, 3, 7, 8, 64}) {
    for (const int64_t accumulation : {1, 3}) {
      const BatchSize before{.per_process = batch,
                             .num_processes = 2,
                             .accumulation = accumulation};
      const BatchSize after = engine::halved(before);
      EXPECT_EQ(after.per_process, (batch + 1) / 2);
      EXPECT_EQ(after.num_processes, 2);
      EXPECT_GE(after.effective(), before.effective());
      EXPECT_LT(after.effective() - before.effective(),
                after.per_process * after.num_processes);
    }
  }
}

TEST(Halving, SaysHowToStartSoWhereFlagsCan) {
  const auto text = [](int64_t batch) {
    const BatchSize before{.per_process = batch};
    return engine::halving_text(12, before, engine::halved(before), batch);
  };
  EXPECT_EQ(text(64),
            "out of memory in step 12: the batch per process is halved from 64 "
            "to 32 and accumulation raised from 1 to 2; the effective batch "
            "stays 64, and the step is repeated. To start so: --batch_size 32 "
            "--gradient_accumulation_steps 2");
  testing::expect_not_in(text(3), "To start so");
}

// Memory runs out whenever a batch has more samples than fit.
class LargeTask final : public testing::LineTask {
 public:
  Loss loss(const Batch& batch, SampleRandom& random) override {
    num_losses += 1;
    // As dropout does.
    const double draw = torch::rand({}).item<double>();
    TORCH_CHECK_WITH(OutOfMemoryError, batch.size() <= num_fitting,
                     "CUDA out of memory.");
    draws.push_back(draw);
    return LineTask::loss(batch, random);
  }

  int64_t num_fitting = 8;
  int64_t num_losses = 0;
  std::vector<double> draws;  // One per computed loss.
};

struct LargeTraining {
  explicit LargeTraining(int64_t num_fitting, OnOutOfMemory choice)
      : loop(learner,
             StepLoader(
                 task.data().train, world,
                 {.global_batch_size = 8, .micro_batch_size = 8, .workers = 0}),
             world, console,
             {.num_epochs = 3,
              .schedule = {.total_updates = 100},
              .base_lr = 1e-3,
              .on_out_of_memory = choice}) {
    task.num_fitting = num_fitting;
    torch::manual_seed(3);
  }

  World world = World::from_environment({.device = DeviceChoice::kCpu}, {});
  LargeTask task;
  engine::Learner learner{
      task, world, {.optimization = {.optimizer = "sgd", .ema_decay = {0.5}}}};
  std::string printed;
  track::Console console{
      {}, {.err = [this](std::string_view text) { printed += text; }}};
  engine::TrainLoop loop;
};

TEST(Halving, GoesOnUntilTheBatchFits) {
  LargeTraining whole(8, OnOutOfMemory::kHalve);
  whole.loop.run({}, {});
  LargeTraining halved(2, OnOutOfMemory::kHalve);
  halved.loop.run({}, {});
  EXPECT_EQ(halved.loop.state().step, 3);
  EXPECT_EQ(halved.loop.micro_batch_size(), 2);
  EXPECT_NEAR(halved.task.weight(), whole.task.weight(), 1e-6);
  EXPECT_EQ(halved.learner.averages()[0].num_updates(), 3);
  // Twice in vain, then 4 batches in each of 3 steps.
  EXPECT_EQ(halved.task.num_losses, 2 + 4 * 3);
  EXPECT_EQ(halved.task.draws[0], whole.task.draws[0])
      << "generators are put back";
  testing::expect_in(halved.printed, "halved from 4 to 2");
  EXPECT_EQ(whole.printed, "");
}

TEST(Halving, EndsBelowOneSample) {
  LargeTraining training(0, OnOutOfMemory::kHalve);
  EXPECT_THROW(training.loop.run({}, {}), c10::OutOfMemoryError);
  EXPECT_EQ(training.loop.micro_batch_size(), 1);
  EXPECT_EQ(training.loop.state().step, 0);
}

TEST(Halving, IsAChoice) {
  LargeTraining training(2, OnOutOfMemory::kFail);
  EXPECT_THROW(training.loop.run({}, {}), c10::OutOfMemoryError);
  EXPECT_EQ(training.loop.micro_batch_size(), 8);
}

}  // namespace
}  // namespace lockstep
