#include "lockstep/data/step_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "lockstep/error.h"
#include "lockstep/random.h"

namespace lockstep {
namespace {

// The samples of each step of an epoch, all ranks together, without fillers.
std::vector<std::multiset<int64_t>> steps_of(data::StepPlanConfig config,
                                             int size, DataPosition position) {
  std::vector<std::multiset<int64_t>> steps;
  const int64_t epoch = position.epoch;
  while (position.epoch == epoch) {
    std::multiset<int64_t> samples;
    Step step;
    for (int rank = 0; rank < size; ++rank) {
      data::StepPlan plan(config, {rank, size});
      step = plan.step_at(position);
      const auto requests = plan.requests(step);
      EXPECT_EQ(static_cast<int64_t>(requests.size()), step.num_micro_batches);
      for (const data::BatchRequest& request : requests) {
        EXPECT_FALSE(request.indices.empty());
        EXPECT_LE(static_cast<int64_t>(request.indices.size()),
                  config.micro_batch);
        if (!request.is_filler) {
          samples.insert(request.indices.begin(), request.indices.end());
        }
      }
    }
    EXPECT_EQ(static_cast<int64_t>(samples.size()), step.num_samples);
    steps.push_back(std::move(samples));
    position = step.next;
  }
  return steps;
}

TEST(StepPlan, StepsDoNotDependOnTheNumberOfProcesses) {
  for (const int64_t num_samples : {24, 97, 100, 101}) {
    data::StepPlanConfig config{
        .num_samples = num_samples, .global_batch = 24, .seed = 5};
    config.micro_batch = 24;
    const auto alone = steps_of(config, 1, {.epoch = 3});
    for (const int size : {2, 3, 4, 8}) {
      for (const int64_t micro_batch : {1, 2, 3}) {
        config.micro_batch = micro_batch;
        EXPECT_EQ(steps_of(config, size, {.epoch = 3}), alone);
      }
    }
  }
}

TEST(StepPlan, GivesEverySampleOncePerEpoch) {
  const data::StepPlanConfig config{
      .num_samples = 101, .global_batch = 16, .micro_batch = 2, .seed = 1};
  std::multiset<int64_t> seen;
  for (const auto& step : steps_of(config, 4, {})) {
    seen.insert(step.begin(), step.end());
  }
  std::vector<int64_t> all(101);
  std::iota(all.begin(), all.end(), int64_t{0});
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), all.begin(), all.end()));
}

TEST(StepPlan, GoesOnWithAnotherNumberOfProcessesInTheMiddleOfAnEpoch) {
  data::StepPlanConfig config{
      .num_samples = 100, .global_batch = 12, .micro_batch = 3, .seed = 9};
  std::multiset<int64_t> seen;
  const auto first = steps_of(config, 4, {});
  for (int k = 0; k < 3; ++k) seen.insert(first[k].begin(), first[k].end());
  config.global_batch = 9;
  for (const auto& step : steps_of(config, 3, {.epoch = 0, .sample = 36})) {
    seen.insert(step.begin(), step.end());
  }
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 100U);
}

TEST(StepPlan, ARankWithoutSamplesGetsFillers) {
  data::StepPlan last({.num_samples = 9, .global_batch = 8, .micro_batch = 2},
                      {.rank = 3, .size = 4});
  const Step step = last.step_at({.epoch = 0, .sample = 8});
  EXPECT_EQ(step.num_samples, 1);
  ASSERT_EQ(step.num_micro_batches, 1);
  EXPECT_TRUE(step.ends_epoch());
  EXPECT_TRUE(last.requests(step)[0].is_filler);
}

TEST(StepPlan, DropsTheLastSmallerStepWhenAsked) {
  const data::StepPlan plan(
      {.num_samples = 20, .global_batch = 8, .drop_last = true}, {});
  EXPECT_EQ(plan.steps_per_epoch(), 2);
  EXPECT_EQ(plan.samples_per_epoch(), 16);
  EXPECT_EQ(plan.step_at({.epoch = 0, .sample = 8}).next.epoch, 1);
}

TEST(StepPlan, EpochsDifferUnlessTheFirstIsRepeated) {
  data::StepPlanConfig config{
      .num_samples = 64, .global_batch = 16, .micro_batch = 16, .seed = 2};
  EXPECT_NE(steps_of(config, 1, {.epoch = 0}),
            steps_of(config, 1, {.epoch = 1}));
  config.repeat_first_epoch = true;
  config.max_steps_per_epoch = 2;
  EXPECT_EQ(steps_of(config, 1, {.epoch = 0}),
            steps_of(config, 1, {.epoch = 7}));
  EXPECT_EQ(steps_of(config, 1, {}).size(), 2U);
}

TEST(StepPlan, RequestsOfARunGoOnOverTheEndOfAnEpoch) {
  const data::StepPlanConfig config{
      .num_samples = 5, .global_batch = 4, .micro_batch = 4, .seed = 3};
  data::StepPlan plan(config, {});
  data::StepRequests requests(plan, {});
  DataPosition position;
  for (int k = 0; k < 6; ++k) {
    const Step step = plan.step_at(position);
    const auto expected = plan.requests(step);
    const auto request = requests();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->indices, expected[0].indices);
    EXPECT_EQ(request->epoch, k / 2);
    position = step.next;
  }
}

TEST(StepPlan, RefusesWhatCannotBeTrainedOn) {
  const auto text = [](const data::StepPlanConfig& config, Shard shard) {
    try {
      const data::StepPlan plan(config, shard);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(text({.num_samples = 0}, {}).find("is empty"), std::string::npos);
  EXPECT_NE(text({.num_samples = 3}, {.rank = 0, .size = 4})
                .find("3 samples for 4 processes"),
            std::string::npos);
  EXPECT_NE(text({.num_samples = 3, .global_batch = 4, .drop_last = true}, {})
                .find("--drop_last"),
            std::string::npos);
}

std::vector<int64_t> lengths_of(int64_t count) {
  std::vector<int64_t> lengths;
  RandomStream random(5);
  for (int64_t i = 0; i < count; ++i)
    lengths.push_back(30 + random.integer(400));
  return lengths;
}

// Batches of an epoch on one process.
std::vector<std::vector<int64_t>> batches_of(const data::StepPlanConfig& config,
                                             int64_t epoch) {
  data::StepPlan plan(config, Shard{});
  std::vector<std::vector<int64_t>> batches;
  DataPosition position{.epoch = epoch};
  while (position.epoch == epoch) {
    const Step step = plan.step_at(position);
    batches.push_back(plan.requests(step).at(0).indices);
    position = step.next;
  }
  return batches;
}

// Padding to the longest of a batch, as a share of all.
double padding(const std::vector<std::vector<int64_t>>& batches,
               const std::vector<int64_t>& lengths) {
  double used = 0;
  double all = 0;
  for (const auto& batch : batches) {
    int64_t longest = 0;
    for (const int64_t i : batch) {
      used += static_cast<double>(lengths[static_cast<size_t>(i)]);
      longest = std::max(longest, lengths[static_cast<size_t>(i)]);
    }
    all += static_cast<double>(longest) * static_cast<double>(batch.size());
  }
  return 1 - used / all;
}

TEST(StepPlan, TakesSamplesOfSimilarLengthTogether) {
  data::StepPlanConfig config{
      .num_samples = 1000, .global_batch = 16, .micro_batch = 16, .seed = 3};
  const auto lengths = lengths_of(1000);
  const double without = padding(batches_of(config, 0), lengths);
  config.lengths = lengths;
  const auto first = batches_of(config, 0);
  const auto second = batches_of(config, 1);
  EXPECT_GT(without, 0.4);
  EXPECT_LT(padding(first, lengths), 0.12);
  EXPECT_NE(first, second);
  std::vector<int64_t> seen;
  for (const auto& batch : first) {
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);
  // Long and short steps are mixed: the first ones are no shorter than others.
  double early = 0;
  for (size_t i = 0; i < 31; ++i) {
    early +=
        static_cast<double>(lengths[static_cast<size_t>(first[i][0])]) / 31;
  }
  EXPECT_NEAR(early, 230, 60);
}

TEST(StepPlan, OrderByLengthDoesNotDependOnTheBatch) {
  data::StepPlanConfig config{.num_samples = 300,
                              .global_batch = 10,
                              .micro_batch = 10,
                              .seed = 3,
                              .lengths = lengths_of(300)};
  const auto flat = [&] {
    std::vector<int64_t> all;
    for (const auto& batch : batches_of(config, 2)) {
      all.insert(all.end(), batch.begin(), batch.end());
    }
    return all;
  };
  const auto tens = flat();
  config.global_batch = config.micro_batch = 25;
  EXPECT_EQ(flat(), tens);
}

}  // namespace
}  // namespace lockstep
