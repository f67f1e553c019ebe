#include "lockstep/engine/loss_check.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/engine/learner.h"
#include "lockstep/error.h"
#include "lockstep/step_loader.h"
#include "support/messages.h"
#include "unit/engine/line_task.h"

namespace lockstep {
namespace {

using testing::contains;

at::Tensor scalar() { return torch::ones({}, torch::requires_grad()); }

std::string refused(const Loss& loss) {
  return testing::refusal<ConfigError>(
      [&] { engine::check_loss(loss, "ring"); });
}

TEST(LossCheck, TakesScalars) {
  EXPECT_EQ(refused({.sum = scalar()}), "accepted");
  EXPECT_EQ(refused({.sum = scalar(),
                     .normaliser = torch::ones({}, torch::kLong),
                     .parts = {{"pose", torch::ones({})}}}),
            "accepted");
  EXPECT_EQ(refused({.terms = {{.name = "seg",
                                .sum = scalar(),
                                .normaliser = torch::ones({})}}}),
            "accepted");
}

TEST(LossCheck, NamesTheRecipeAndTheShape) {
  EXPECT_EQ(refused({.sum = torch::ones({8, 2}, torch::requires_grad())}),
            "loss() of the recipe ring: sum has the shape [8, 2] and must be a "
            "scalar: add its numbers up with .sum()");
  EXPECT_TRUE(
      contains(refused({.sum = scalar(), .normaliser = torch::ones({3})}),
               "normaliser has the shape [3]"));
  EXPECT_TRUE(contains(
      refused({.sum = scalar(), .parts = {{"pose", torch::ones({4})}}}),
      "the part 'pose' has the shape [4]"));
  EXPECT_TRUE(contains(refused({.terms = {{.name = "seg",
                                           .sum = torch::ones({5}),
                                           .normaliser = torch::ones({})}}}),
                       "the sum of the term 'seg' has the shape [5]"));
}

TEST(LossCheck, NamesWhatIsMissing) {
  EXPECT_TRUE(contains(refused({}), "sum is not set"));
  EXPECT_TRUE(
      contains(refused({.sum = torch::ones({})}), "sum has no gradient"));
  EXPECT_TRUE(contains(refused({.sum = torch::ones({}, torch::kLong)}),
                       "sum has the type Long"));
}

TEST(LossCheck, ATermMayBeConstantButNotAllOfThem) {
  const LossTerm varying{
      .name = "seg", .sum = scalar(), .normaliser = torch::ones({})};
  const LossTerm constant{
      .name = "edge", .sum = torch::zeros({}), .normaliser = torch::zeros({})};
  EXPECT_EQ(refused({.terms = {varying, constant}}), "accepted");
  EXPECT_TRUE(contains(refused({.terms = {constant, constant}}),
                       "the sum of all terms has no gradient"));
}

// A loss per sample, as in Python with reduction="none".
class UnreducedTask final : public testing::LineTask {
 public:
  Loss loss(const Batch& batch, SampleRandom& random) override {
    return {.sum = LineTask::loss(batch, random).sum.expand({batch.size()})};
  }
};

TEST(LossCheck, TheLearnerChecksBeforeTorchFails) {
  UnreducedTask task;
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, {});
  engine::Learner learner(
      task, world, {.optimization = {.optimizer = "sgd"}, .recipe = "ring"});
  const StepLoader loader(
      task.data().train, world,
      {.global_batch_size = 2, .micro_batch_size = 2, .workers = 0});
  Batches batches = loader.batches({});
  const auto batch = batches.next();
  EXPECT_TRUE(
      contains(testing::refusal<ConfigError>([&] { learner.forward(*batch); }),
               "loss() of the recipe ring: sum has the shape [2]"));
}

TEST(LossCheck, TheOwnLossIsTheMeanSinceTheLastLog) {
  testing::LineTask task(2);
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, {});
  engine::Learner learner(task, world, {.optimization = {.optimizer = "sgd"}});
  EXPECT_EQ(learner.own_loss(), std::nullopt);
  const StepLoader loader(
      task.data().train, world,
      {.global_batch_size = 2, .micro_batch_size = 2, .workers = 0});
  Batches batches = loader.batches({});
  learner.begin_step(0);
  learner.forward(*batches.next());
  learner.backward();
  learner.update();
  // (2 * 1)^2 and (2 * 2)^2.
  EXPECT_DOUBLE_EQ(learner.own_loss().value(), 10);
  EXPECT_DOUBLE_EQ(learner.take_progress().loss, 10);
}

}  // namespace
}  // namespace lockstep
