// Ranks whose state is not that of the others are found, named and healed.
#include "lockstep/parallel/replica_check.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <random>

#include "distributed/training.h"
#include "lockstep/error.h"
#include "support/messages.h"
#include "support/ranks.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

using parallel::compare_replicas;
using parallel::NamedTensor;

std::vector<NamedTensor> make_state() {
  torch::manual_seed(5);
  return {{.name = "weight", .tensor = torch::randn({33, 17})},
          {.name = "step", .tensor = torch::full({}, 7.F)},
          {.name = "exact", .tensor = torch::randn({501}, at::kDouble)},
          {.name = "half", .tensor = torch::randn({99}).to(at::kBFloat16)},
          {.name = "bytes", .tensor = torch::ones({13}, at::kByte)},
          {.name = "filters",
           .tensor = torch::randn({4, 3, 5, 5})
                         .contiguous(at::MemoryFormat::ChannelsLast)}};
}

std::vector<NamedTensor> copy_of(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> copies;
  for (const NamedTensor& named : tensors) {
    copies.push_back({.name = named.name, .tensor = named.tensor.clone()});
  }
  return copies;
}

// The same on all ranks for the same number.
struct Flip {
  size_t tensor;
  size_t byte;
  uint8_t bit;

  Flip(const std::vector<NamedTensor>& state, std::mt19937& random)
      : tensor(random() % state.size()),
        byte(random() % state[tensor].tensor.nbytes()),
        bit(static_cast<uint8_t>(1U << (random() % 8))) {}

  void apply(const std::vector<NamedTensor>& state) const {
    static_cast<uint8_t*>(state[tensor].tensor.data_ptr())[byte] ^= bit;
  }
};

void expect_same(const std::vector<NamedTensor>& actual,
                 const std::vector<NamedTensor>& expected) {
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(
        std::memcmp(actual[i].tensor.data_ptr(), expected[i].tensor.data_ptr(),
                    actual[i].tensor.nbytes()),
        0)
        << actual[i].name;
  }
}

TEST(ReplicaCheck, FindsNamesAndHealsEachOf200FlippedBits) {
  run_ranks({.size = 3}, [](const World& world) {
    const auto expected = make_state();
    const auto state = copy_of(expected);
    EXPECT_FALSE(compare_replicas(world, state));
    std::mt19937 random(1);
    for (int turn = 0; turn < 200; ++turn) {
      SCOPED_TRACE(turn);
      const Flip flip(state, random);
      const int victim = turn % 3;
      if (world.rank() == victim) flip.apply(state);
      const auto found = compare_replicas(world, state);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->ranks, std::vector<int>{victim});
      EXPECT_EQ(found->names,
                std::vector<std::string>{state[flip.tensor].name});
      EXPECT_TRUE(found->is_healed);
      expect_same(state, expected);
      EXPECT_FALSE(compare_replicas(world, state));
    }
  });
}

// Opposite flips of one bit leave a plain sum as it was; the tensor is longer
// than a block of the comparison.
TEST(ReplicaCheck, FindsTwoFlipsThatUndoEachOther) {
  run_ranks({.size = 3}, [](const World& world) {
    constexpr int64_t kWords = 150'000;
    const std::vector<NamedTensor> state = {
        {.name = "words", .tensor = torch::zeros({kWords}, at::kInt)}};
    auto* words = state[0].tensor.data_ptr<int32_t>();
    std::mt19937 random(3);
    for (int turn = 0; turn < 50; ++turn) {
      SCOPED_TRACE(turn);
      const auto one = static_cast<int64_t>(random() % kWords);
      const auto other = (one + 1 + random() % (kWords - 1)) % kWords;
      const auto bit = static_cast<int32_t>(1U << (random() % 31));
      words[one] = bit;
      words[other] = 0;
      if (world.rank() == 2) std::swap(words[one], words[other]);
      const auto found = compare_replicas(world, state);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->ranks, std::vector<int>{2});
      EXPECT_EQ(words[one], bit);
      words[one] = 0;
    }
  });
}

TEST(ReplicaCheck, WithoutAMajorityNothingIsChanged) {
  run_ranks({.size = 2}, [](const World& world) {
    const auto state = make_state();
    std::mt19937 random(2);
    const Flip flip(state, random);
    if (world.rank() == 1) flip.apply(state);
    const auto before = copy_of(state);
    const auto found = compare_replicas(world, state);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->ranks, (std::vector<int>{0, 1}));
    EXPECT_EQ(found->names, std::vector<std::string>{state[flip.tensor].name});
    EXPECT_FALSE(found->is_healed);
    expect_same(state, before);
  });
}

// Checksums, which are taken after each comparison.
std::vector<uint64_t> weights_before_batches(
    const std::filesystem::path& record, int rank) {
  std::vector<uint64_t> checksums;
  for (const Seen& seen : read_record(record, rank)) {
    if (seen.phase == "train") checksums.push_back(seen.checksum);
  }
  return checksums;
}

TEST(ReplicaCheck, ATrainingIsHealedByTheMajorityAndGoesOn) {
  const TempDir temp;
  const Training training{
      .recipe = "probe",
      .world = 3,
      .folder = temp.path() / "run",
      .flags = {"--epochs=2", "--batch_size=2", "--flip_sample=9",
                "--check_replicas_every=1", "--record", temp.path().string()}};
  const ProcessResult result = run(training);
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const std::string text = result.out + result.err;
  expect_in(text, "hold other values than the majority in ");
  expect_in(text, "the majority's values were copied to them");
  const auto first = weights_before_batches(temp.path(), 0);
  ASSERT_FALSE(first.empty());
  for (const int rank : {1, 2}) {
    EXPECT_EQ(weights_before_batches(temp.path(), rank), first);
  }
}

TEST(ReplicaCheck, TwoRanksThatDifferEndTheRunBeforeTheySave) {
  const TempDir temp;
  Training training{.recipe = "probe",
                    .world = 2,
                    .folder = temp.path() / "run",
                    .flags = {"--epochs=1", "--batch_size=2", "--flip_sample=9",
                              "--save_every=1"}};
  const ProcessResult result = run(training);
  EXPECT_EQ(result.exit_code, 1) << result.out;
  expect_in(result.out + result.err,
            "no majority of ranks agrees, so nobody knows which is right. Go "
            "back to the last checkpoint with --resume latest");
  // What was saved before is sound: without the fault it goes on.
  training.flags = {"--epochs=1", "--batch_size=2", "--save_every=1",
                    "--flip_sample=none", "--resume=latest"};
  const auto whole = temp.path() / "whole";
  run_well({.recipe = "probe",
            .world = 2,
            .folder = whole,
            .flags = {"--epochs=1", "--batch_size=2", "--save_every=1"}});
  run_well(training);
  expect_equal(learned(last_checkpoint(temp.path() / "run")),
               learned(last_checkpoint(whole)));
}

TEST(StopAfterSteps, SavesEndsWithZeroAndIsResumedToTheSameBits) {
  const TempDir temp;
  Training training{.recipe = "probe",
                    .world = 2,
                    .folder = temp.path() / "whole",
                    .flags = {"--epochs=3", "--batch_size=2",
                              "--lr_schedule=cosine", "--dropout=0.3"}};
  run_well(training);
  training.folder = temp.path() / "parts";
  training.flags.push_back("--stop_after_steps=4");
  const ProcessResult first = run(training);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  expect_in(first.out, "stopped by --stop_after_steps; resume with");
  training.flags.push_back("--resume=latest");
  for (int start = 0; start < 20; ++start) {
    const ProcessResult next = run(training);
    ASSERT_EQ(next.exit_code, 0) << next.err;
    if (next.out.find("stopped by") == std::string::npos) break;
  }
  EXPECT_EQ(metric_lines(temp.path() / "parts"),
            metric_lines(temp.path() / "whole"));
  expect_equal(learned(last_checkpoint(temp.path() / "parts")),
               learned(last_checkpoint(temp.path() / "whole")));
}

}  // namespace
}  // namespace lockstep::testing
