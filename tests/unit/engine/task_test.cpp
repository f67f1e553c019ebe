#include "lockstep/task.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/engine/evaluation.h"
#include "lockstep/error.h"
#include "lockstep/prediction.h"
#include "lockstep/sampling.h"
#include "lockstep/world.h"
#include "support/messages.h"
#include "unit/engine/line_task.h"

namespace lockstep {
namespace {

// The smallest task there can be: y = w x, with one parameter that is frozen.
class MinimalTask : public Task {
 public:
  MinimalTask() {
    model_->register_parameter("weight", torch::ones({1}));
    model_->register_parameter("frozen", torch::ones({1}),
                               /*requires_grad=*/false);
  }

  DataSets data() const override { return {}; }
  std::shared_ptr<torch::nn::Module> model() const override { return model_; }
  Loss loss(const Batch& batch, SampleRandom& /*random*/) override {
    return {.sum = (batch[0] * model_->parameters()[0]).sum(),
            .normaliser = normaliser};
  }

  at::Tensor normaliser = {};

 private:
  std::shared_ptr<torch::nn::Module> model_ =
      std::make_shared<torch::nn::Module>();
};

class SampledTask final : public MinimalTask, public Sampling {
 public:
  int64_t num_items() const override { return 3; }
  at::Tensor sample(std::span<const int64_t> /*items*/,
                    SampleRandom& /*random*/) override {
    return rows;
  }
  std::vector<OutputFile> render(const at::Tensor& /*items*/) override {
    return {};
  }

  at::Tensor rows = {};
};

// Derives a metric that evaluate() adds, too.
class DerivingTask final : public testing::LineTask {
 public:
  Metrics derive(const MetricCounts& /*counts*/) const override {
    return {{"f1", 0.5}, {"loss", 0.25}};
  }
};

double evaluated_loss(MinimalTask& task) {
  const Batch batch{.tensors = {torch::tensor({1.0, 2.0, 6.0})},
                    .indices = {0, 1, 2}};
  SampleRandom random(torch::zeros({3}, torch::kLong));
  MetricSums sums;
  task.evaluate(batch, random, sums);
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, {});
  return *find_metric(sums.result(world), "loss");
}

TEST(Task, TrainsTheParametersThatRequireAGradient) {
  const MinimalTask task;
  const auto groups = task.parameter_groups();
  ASSERT_EQ(groups.size(), 1U);
  ASSERT_EQ(groups[0].parameters.size(), 1U);
  EXPECT_TRUE(groups[0].parameters[0].is_same(task.model()->parameters()[0]));
}

TEST(Task, EvaluatesItsLossPerSampleOrByItsNormaliser) {
  MinimalTask task;
  EXPECT_DOUBLE_EQ(evaluated_loss(task), 3);
  task.normaliser = torch::tensor(2.0);
  EXPECT_DOUBLE_EQ(evaluated_loss(task), 4.5);
}

TEST(Task, AMetricThatIsEvaluatedAndDerivedIsRefused) {
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, {});
  DerivingTask task;
  engine::Learner learner(task, world, {.optimization = {.optimizer = "sgd"}});
  const auto evaluate = [&] {
    engine::evaluate(task, learner, task.data().validation, world,
                     {.batch_size = 4}, [](int64_t, int64_t) { return true; });
  };
  EXPECT_EQ(testing::refusal<Error>(evaluate),
            "derive() gives 'loss', which evaluate() has added already: choose "
            "another name");
}

TEST(Task, SamplesOneRowPerItem) {
  SampledTask task;
  const std::vector<int64_t> items = {0, 1, 2};
  SampleRandom random(torch::zeros({3}, torch::kLong));
  const auto sample = [&] { engine::sample_rows(task, items, random); };
  EXPECT_EQ(testing::refusal<Error>(sample),
            "sample() returned 0 rows for 3 items");
  task.rows = torch::zeros({1, 2});
  EXPECT_EQ(testing::refusal<Error>(sample),
            "sample() returned 1 rows for 3 items");
  task.rows = torch::zeros({3, 2});
  EXPECT_EQ(testing::refusal<Error>(sample), "accepted");
}

TEST(Task, HasTheAbilitiesThatItImplements) {
  MinimalTask plain;
  EXPECT_EQ(ability<Sampling>(static_cast<Task&>(plain)), nullptr);
  SampledTask sampled;
  Task& task = sampled;
  ASSERT_NE(ability<Sampling>(task), nullptr);
  EXPECT_EQ(ability<Sampling>(task)->num_items(), 3);
  EXPECT_FALSE(ability<Sampling>(task)->samples_averages());
  EXPECT_EQ(ability<Prediction>(task), nullptr);
}

}  // namespace
}  // namespace lockstep
