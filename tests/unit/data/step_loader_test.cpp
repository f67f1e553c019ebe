#include "lockstep/step_loader.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "lockstep/error.h"

namespace lockstep {
namespace {

// Sample i is (i, a number drawn from its seed).
class SeededNumbers final : public Dataset {
 public:
  explicit SeededNumbers(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  Sample get(int64_t index, uint64_t seed) const override {
    auto generator = at::detail::createCPUGenerator(seed);
    return {torch::tensor(index), torch::rand({}, generator)};
  }

 private:
  int64_t size_;
};

// A step as all ranks together see it: each sample with its draw.
struct SeenStep {
  DataPosition begin = {};
  DataPosition next = {};
  std::map<int64_t, float> draws = {};
  bool operator==(const SeenStep&) const = default;
};

struct LoaderSetup {
  int64_t num_samples = 50;
  StepLoaderConfig config = {
      .global_batch_size = 12, .micro_batch_size = 2, .seed = 4};
};

StepLoader loader_of(const LoaderSetup& setup, Shard shard) {
  return {std::make_shared<SeededNumbers>(setup.num_samples), shard, at::kCPU,
          setup.config};
}

// Reads `num_steps` steps from `first` on as rank `shard.rank` and adds its
// samples; checks what the batches say of their steps.
void read_rank(const LoaderSetup& setup, Shard shard, DataPosition first,
               std::vector<SeenStep>& steps) {
  Batches batches = loader_of(setup, shard).batches(first);
  for (SeenStep& seen : steps) {
    for (int64_t k = 0;; ++k) {
      const Batch batch = *batches.next();
      EXPECT_EQ(batch.micro_batch, k);
      EXPECT_EQ(batch.step.ends_epoch(),
                batch.step.next.epoch != batch.step.begin.epoch);
      EXPECT_EQ(batch.next,
                batch.ends_step() ? batch.step.next : batch.step.begin);
      seen.begin = batch.step.begin;
      seen.next = batch.step.next;
      for (int64_t i = 0; i < batch.size() && !batch.is_filler; ++i) {
        const bool is_new =
            seen.draws
                .emplace(batch[0][i].item<int64_t>(), batch[1][i].item<float>())
                .second;
        EXPECT_TRUE(is_new) << "a sample came twice in a step";
      }
      if (!batch.ends_step()) continue;
      if (shard.rank + 1 == shard.size) {
        EXPECT_EQ(std::ssize(seen.draws), batch.step.num_samples);
      }
      break;
    }
  }
}

std::vector<SeenStep> read_steps(const LoaderSetup& setup, int num_ranks,
                                 DataPosition first, size_t num_steps) {
  std::vector<SeenStep> steps(num_steps);
  for (int rank = 0; rank < num_ranks; ++rank) {
    read_rank(setup, {rank, num_ranks}, first, steps);
  }
  return steps;
}

TEST(StepLoader, StepsAreEqualOnAnyNumberOfProcesses) {
  for (const int64_t num_samples : {48, 49, 50, 59}) {
    LoaderSetup setup{.num_samples = num_samples};
    const auto alone = read_steps(setup, 1, {}, 12);
    for (const int num_ranks : {2, 3}) {
      for (const int64_t micro_batch_size : {1, 3, 12}) {
        setup.config.micro_batch_size = micro_batch_size;
        EXPECT_EQ(read_steps(setup, num_ranks, {}, 12), alone);
      }
    }
  }
}

TEST(StepLoader, OtherMicroBatchesHoldTheSamplesOfTheSameSteps) {
  const LoaderSetup setup{
      .config = {.global_batch_size = 12, .micro_batch_size = 6, .seed = 4}};
  const StepLoader loader =
      loader_of(setup, {.rank = 1, .size = 2}).with_micro_batches_of(3);
  EXPECT_EQ(loader.config().micro_batch_size, 3);
  EXPECT_EQ(loader.config().prefetch_batches, 4);
  Batches whole = loader_of(setup, {.rank = 1, .size = 2}).batches();
  Batches parts = loader.batches();
  for (int step = 0; step < 4; ++step) {
    const Batch expected = *whole.next();
    const Batch first = *parts.next();
    const Batch second = *parts.next();
    EXPECT_TRUE(torch::cat({first[1], second[1]}).equal(expected[1]));
    EXPECT_TRUE(torch::cat({first.seeds, second.seeds}).equal(expected.seeds));
    EXPECT_EQ(first.step.num_micro_batches, 2);
    EXPECT_EQ(second.step.next, expected.step.next);
  }
  EXPECT_THROW(loader.with_micro_batches_of(0), ConfigError);
}

TEST(StepLoader, ResumesAtAnyStepOnAnyNumberOfProcesses) {
  const LoaderSetup setup;
  const auto whole = read_steps(setup, 2, {}, 11);
  for (size_t cut = 0; cut + 1 < whole.size(); ++cut) {
    const auto rest = read_steps(setup, 1 + static_cast<int>(cut % 3),
                                 whole[cut].next, whole.size() - cut - 1);
    EXPECT_EQ(rest, std::vector(whole.begin() + static_cast<int64_t>(cut) + 1,
                                whole.end()));
  }
}

TEST(StepLoader, AnEpochEndsWithItsLastStep) {
  const LoaderSetup setup;
  const StepLoader loader = loader_of(setup, Shard{});
  EXPECT_EQ(loader.steps_per_epoch(), 5);
  EXPECT_EQ(loader.steps_until({.epoch = 1, .sample = 24}, 3), 3 + 5);
  const auto steps = read_steps(setup, 1, {}, 6);
  EXPECT_EQ(steps[3].next, (DataPosition{.epoch = 0, .sample = 48}));
  EXPECT_EQ(steps[4].next, (DataPosition{.epoch = 1, .sample = 0}));
  EXPECT_EQ(steps[4].draws.size(), 2U);
  EXPECT_EQ(steps[5].begin, steps[4].next);
}

TEST(StepLoader, ARankWithoutSamplesGetsAFiller) {
  const LoaderSetup setup{
      .num_samples = 9,
      .config = {.global_batch_size = 8, .micro_batch_size = 2}};
  Batches batches =
      loader_of(setup, {.rank = 3, .size = 4}).batches({.sample = 8});
  const Batch batch = *batches.next();
  EXPECT_TRUE(batch.is_filler);
  EXPECT_TRUE(batch.ends_step());
  EXPECT_EQ(batch.step.num_samples, 1);
  EXPECT_EQ(batch.size(), 2);
}

TEST(StepLoader, RefusesBadSettings) {
  EXPECT_THROW(StepLoader(nullptr, Shard{}, at::kCPU, {}), ConfigError);
  for (const StepLoaderConfig& config :
       {StepLoaderConfig{.global_batch_size = 0},
        StepLoaderConfig{.micro_batch_size = 0},
        StepLoaderConfig{.workers = -1},
        StepLoaderConfig{.prefetch_batches = 0}}) {
    EXPECT_THROW(loader_of({.config = config}, Shard{}), ConfigError);
  }
  EXPECT_THROW(loader_of({.num_samples = 3}, {.rank = 0, .size = 4}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep
