#include "lockstep/engine/learner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/engine/replica_copy.h"
#include "lockstep/step_loader.h"
#include "unit/engine/line_task.h"

namespace lockstep {
namespace {

using testing::LineTask;

World world_of_one() {
  return World::from_environment({.device = DeviceChoice::kCpu}, {});
}

engine::LearnerConfig sgd() {
  return {
      .optimization = {.optimizer = "sgd", .momentum = 0, .ema_decay = {0.5}}};
}

// Whole epochs of all samples per step, in order, in micro-batches.
class Steps {
 public:
  Steps(const Task& task, const World& world, int64_t micro_batch_size)
      : loader_(task.data().train, world,
                {.global_batch_size = task.data().train->size(),
                 .micro_batch_size = micro_batch_size,
                 .workers = 0,
                 .shuffle = false}),
        batches_(loader_.batches()) {}

  void train(engine::Learner& learner, double lr) {
    learner.begin_step(lr);
    for (bool ends_step = false; !ends_step;) {
      const Batch batch = *batches_.next();
      learner.forward(batch);
      learner.backward();
      ends_step = batch.ends_step();
    }
    learner.update();
  }

 private:
  StepLoader loader_;
  Batches batches_;
};

// The gradient of mean (w - 3)^2 x^2 at w = 1 for x = 1..8.
constexpr double kGradient = -4 * 204.0 / 8;

TEST(Learner, AStepCanBeRepeatedUntilItsUpdate) {
  const World world = world_of_one();
  LineTask task;
  engine::Learner learner(task, world, sgd());
  learner.begin_step(1e-3);
  EXPECT_TRUE(learner.can_repeat_step());
  Steps(task, world, 4).train(learner, 1e-3);
  EXPECT_FALSE(learner.can_repeat_step());
  learner.begin_step(1e-3);
  EXPECT_TRUE(learner.can_repeat_step());
}

TEST(Learner, AStepFollowsTheMeanLossInAnyMicroBatches) {
  const World world = world_of_one();
  for (const int64_t micro_batch_size : {1, 3, 8}) {
    LineTask task;
    engine::Learner learner(task, world, sgd());
    Steps(task, world, micro_batch_size).train(learner, 1e-3);
    EXPECT_NEAR(task.weight(), 1 - 1e-3 * kGradient, 1e-5);
    const engine::Progress progress = learner.take_progress();
    EXPECT_NEAR(progress.loss, 4 * 204.0 / 8, 1e-3);
    EXPECT_EQ(progress.loss_weight, 8);
    EXPECT_NEAR(progress.gradient_norm, -kGradient, 1e-2);
    EXPECT_EQ(progress.skipped_steps, 0);
  }
}

TEST(Learner, AStepWithoutAFiniteGradientChangesNothing) {
  const World world = world_of_one();
  LineTask task;
  engine::Learner learner(task, world, sgd());
  Steps steps(task, world, 4);
  task.loss_factor = NAN;
  steps.train(learner, 1e-3);
  steps.train(learner, 1e-3);
  EXPECT_EQ(task.weight(), 1);
  engine::Progress progress = learner.take_progress();
  EXPECT_TRUE(std::isnan(progress.loss));
  EXPECT_EQ(progress.skipped_steps, 2);
  EXPECT_EQ(progress.skipped_in_a_row, 2);
  task.loss_factor = 1;
  steps.train(learner, 1e-3);
  progress = learner.take_progress();
  EXPECT_EQ(progress.skipped_in_a_row, 0);
  EXPECT_NE(task.weight(), 1);
}

TEST(Learner, ProgressContinuesFromSavedSums) {
  const World world = world_of_one();
  LineTask task;
  engine::Learner learner(task, world, sgd());
  Steps steps(task, world, 8);
  steps.train(learner, 0);
  const at::Tensor saved = learner.running_sums().clone();
  learner.take_progress();
  learner.set_running_sums(saved);
  task.loss_factor = 3;
  steps.train(learner, 0);
  EXPECT_NEAR(learner.take_progress().loss, 2 * 4 * 204.0 / 8, 1e-3);
}

TEST(Learner, AveragesFollowTheWeights) {
  const World world = world_of_one();
  LineTask task;
  engine::Learner learner(task, world, sgd());
  Steps(task, world, 8).train(learner, 1e-3);
  EXPECT_EQ(learner.parameter_names(), std::vector<std::string>{"weight"});
  EXPECT_NEAR(learner.averages().at(0).averages().at(0).item<double>(),
              (1 + task.weight()) / 2, 1e-6);
}

// What all ranks hold alike, as numbers.
std::vector<at::Tensor> replicas_of(const engine::Learner& learner) {
  std::vector<at::Tensor> values;
  for (const auto& [name, tensor] : learner.replicated_tensors()) {
    values.push_back(tensor.detach().clone());
  }
  return values;
}

class ReplicaCopyTest : public ::testing::Test {
 protected:
  void train(int num_steps) {
    for (int step = 0; step < num_steps; ++step) steps_.train(learner_, 1e-3);
  }

  // As an update does whose exchange was aborted.
  void train_garbage() {
    task_.loss_factor = 1e6;
    train(1);
  }

  void expect_as(const std::vector<at::Tensor>& noted) {
    const auto values = replicas_of(learner_);
    ASSERT_EQ(values.size(), noted.size());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_TRUE(at::equal(values[i], noted[i])) << i;
    }
  }

  World world_ = world_of_one();
  LineTask task_;
  engine::Learner learner_{
      task_,
      world_,
      {.optimization = {.optimizer = "adamw", .ema_decay = {0.5, 0.9}}}};
  Steps steps_{task_, world_, 4};
  engine::ReplicaCopy copy_{learner_};
};

TEST_F(ReplicaCopyTest, AnUpdateOfGarbageIsTakenBack) {
  train(2);
  copy_.note();
  train(1);
  copy_.note();
  const auto noted = replicas_of(learner_);
  train_garbage();
  copy_.restore();
  expect_as(noted);
  EXPECT_EQ(learner_.averages()[1].num_updates(), 3);
}

TEST_F(ReplicaCopyTest, SoIsAFirstOne) {
  copy_.note();
  const auto noted = replicas_of(learner_);
  train_garbage();
  copy_.restore();
  expect_as(noted);
  EXPECT_TRUE(learner_.optimizer().state().parameters[0].empty());
}

TEST_F(ReplicaCopyTest, TheNextStepIsAsIfNothingHadHappened) {
  LineTask undisturbed_task;
  engine::Learner undisturbed(
      undisturbed_task, world_,
      {.optimization = {.optimizer = "adamw", .ema_decay = {0.5, 0.9}}});
  Steps steps(undisturbed_task, world_, 4);
  for (int step = 0; step < 3; ++step) steps.train(undisturbed, 1e-3);
  train(2);
  copy_.note();
  train_garbage();
  copy_.restore();
  task_.loss_factor = 1;
  train(1);
  expect_as(replicas_of(undisturbed));
}

}  // namespace
}  // namespace lockstep
