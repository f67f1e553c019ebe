// A training that runs out of memory goes on with smaller micro-batches: the
// samples of its steps, and their gradients, stay.
#include <gtest/gtest.h>

#include <algorithm>

#include "distributed/training.h"
#include "support/messages.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

constexpr const char* kHalved = "the batch per process is halved from";

class OutOfMemory : public ::testing::Test {
 protected:
  Training probe(const std::string& name, const Words& flags) const {
    return {.recipe = "probe", .folder = temp_.path() / name, .flags = flags};
  }

  // Samples of each training batch.
  std::vector<size_t> batch_sizes() const {
    std::vector<size_t> sizes;
    for (const Seen& seen : read_record(temp_.path(), 0)) {
      if (seen.phase == "train") sizes.push_back(seen.indices.size());
    }
    return sizes;
  }

  TempDir temp_;
};

int num_halvings(const ProcessResult& result) {
  const std::string text = result.out + result.err;
  int number = 0;
  for (auto at = text.find(kHalved); at != std::string::npos;
       at = text.find(kHalved, at + 1)) {
    ++number;
  }
  return number;
}

// Equal weights, optimizer state, generators, sums and metrics.
void expect_same_end(const std::filesystem::path& folder,
                     const std::filesystem::path& other) {
  const Tree actual = last_checkpoint(folder);
  const Tree expected = last_checkpoint(other);
  expect_equal(learned(actual), learned(expected));
  for (const char* part : {"state", "generators", "running_sums"}) {
    expect_equal(*actual.at("lockstep").value().find(part),
                 *expected.at("lockstep").value().find(part), part);
  }
  EXPECT_EQ(metric_lines(folder), metric_lines(other));
}

TEST_F(OutOfMemory, InSteps3And10And50ChangesNoLoss) {
  const Words flags = {"--batch_size=8",    "--train_samples=212", "--epochs=2",
                       "--own_normaliser",  "--ema_decay=0.9",     "--lr=0.001",
                       "--max_grad_norm=1", "--keep_last=0"};
  const Training whole = probe("whole", flags);
  run_well(whole);
  const Training halved = probe(
      "halved", flags + Words{"--on_oom=halve", "--memory_steps", "3", "10",
                              "50", "--record", temp_.path().string()});
  const ProcessResult result = run(halved);
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(num_halvings(result), 3) << result.err << result.out;
  expect_in(result.out + result.err,
            "out of memory in step 3: the batch per process is halved from 8 "
            "to 4 and accumulation raised from 1 to 2; the effective batch "
            "stays 8, and the step is repeated. To start so: --batch_size 4 "
            "--gradient_accumulation_steps 2");
  expect_in(result.out + result.err, "out of memory in step 50: ");
  const auto expected = metric(whole.folder, "train/loss");
  const auto losses = metric(halved.folder, "train/loss");
  ASSERT_EQ(expected.size(), 54U);
  expect_close(losses, expected, 1e-6);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(losses.at(i), expected[i]) << "the steps before have their bits";
  }
  for (const char* name : {"train/epoch_loss", "val/loss", "train/grad_norm"}) {
    SCOPED_TRACE(name);
    expect_close(metric(halved.folder, name), metric(whole.folder, name), 1e-5);
  }
  EXPECT_EQ(metric(halved.folder, "train/learning_rate"),
            metric(whole.folder, "train/learning_rate"));
  // Steps 1 and 2, what failed of step 3, and step 3 in two parts.
  const auto sizes = batch_sizes();
  EXPECT_EQ(std::vector(sizes.begin(), sizes.begin() + 6),
            (std::vector<size_t>{8, 8, 8, 4, 4, 4}));
  EXPECT_EQ(sizes.back(), 1U);
}

class OutOfMemoryAt : public OutOfMemory,
                      public ::testing::WithParamInterface<const char*> {};

// Dropout, batch statistics, averages and sums: nothing of the step that failed
// is left.
TEST_P(OutOfMemoryAt, HasTheBitsOfATrainingResumedWithTheSmallerBatch) {
  const Words flags = {"--train_samples=44", "--epochs=2",
                       "--dropout=0.3",      "--batch_norm",
                       "--own_normaliser",   "--ema_decay=0.9",
                       "--log_every=2",      "--on_oom=halve_anyway"};
  const Words batch = {"--batch_size=4", "--gradient_accumulation_steps=2"};
  const Words smaller = {"--batch_size=2", "--gradient_accumulation_steps=4"};
  const Training halved =
      probe("halved", flags + batch + Words{"--memory_steps=3", GetParam()});
  const ProcessResult result = run(halved);
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(num_halvings(result), 1) << result.err << result.out;
  const Training first =
      probe("resumed", flags + batch + Words{"--stop_after_steps=2"});
  run(first);
  const Training rest =
      probe("resumed", flags + smaller +
                           Words{"--resume=latest", "--stop_after_steps=99"});
  run_well(rest);
  expect_same_end(halved.folder, rest.folder);
}

INSTANTIATE_TEST_SUITE_P(Passes, OutOfMemoryAt,
                         ::testing::Values("--memory_in_backward=false",
                                           "--memory_in_backward=true"),
                         [](const auto& tested) {
                           return std::string(tested.param).ends_with("true")
                                      ? "Backward"
                                      : "Forward";
                         });

TEST_F(OutOfMemory, BelowOneSampleEndsTheTrainingWithTheReport) {
  const ProcessResult result = run(
      probe("run", {"--batch_size=3", "--memory_sample=7", "--on_oom=halve"}));
  EXPECT_EQ(result.exit_code, 7) << result.err << result.out;
  EXPECT_EQ(num_halvings(result), 2) << result.err << result.out;
  expect_in(result.out + result.err, "halved from 3 to 2");
  expect_in(result.out + result.err, "halved from 2 to 1");
  for (const char* part :
       {"DeviceError: out of memory on rank 0 of 1 (CPU, cpu) at step ",
        "batch of 1 per process", "--batch_size 1", "--dropout 0"}) {
    expect_in(result.err, part);
  }
  expect_not_in(result.err, "--on_oom");
}

TEST_F(OutOfMemory, EndsTheTrainingUnlessAskedFor) {
  const ProcessResult result =
      run(probe("run", {"--batch_size=3", "--memory_steps=2"}));
  EXPECT_EQ(result.exit_code, 7) << result.err << result.out;
  EXPECT_EQ(num_halvings(result), 0) << result.err << result.out;
  expect_in(result.err, "at step 2: batch of 3 per process");
  expect_in(result.err, "  --on_oom halve (smaller micro-batches when needed");
}

TEST_F(OutOfMemory, OfTheMachineIsNoDifferent) {
  const ProcessResult result =
      run(probe("run", {"--batch_size=4", "--memory_steps=2", "--host_memory",
                        "--on_oom=halve", "--precision=bf16"}));
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(num_halvings(result), 1) << result.err << result.out;
}

struct Refusal {
  std::string flag;
  std::string reason;
};

TEST_F(OutOfMemory, IsNotRepairedWhereThatWouldChangeTheTraining) {
  for (const auto& [flag, reason] : std::vector<Refusal>{
           {"--batch_norm",
            "the layer 'norm' computes its statistics over a micro-batch"},
           {"--loss_terms",
            "the terms of the loss are means over a "
            "micro-batch"}}) {
    SCOPED_TRACE(flag);
    const ProcessResult result =
        run(probe("run", {flag, "--on_oom=halve", "--overwrite"}));
    EXPECT_EQ(result.exit_code, 2) << result.err << result.out;
    expect_in(result.err, "--on_oom halve: " + reason);
    expect_in(result.err, "accept the change with --on_oom halve_anyway");
    const ProcessResult accepted =
        run(probe("run", {flag, "--on_oom=halve_anyway", "--memory_steps=2",
                          "--overwrite"}));
    EXPECT_EQ(accepted.exit_code, 0) << accepted.err << accepted.out;
    EXPECT_EQ(num_halvings(accepted), 1) << accepted.err << accepted.out;
  }
}

TEST_F(OutOfMemory, OfSeveralProcessesIsRefusedWhereTheyCannotConnectAnew) {
  Training two = probe("run", {"--on_oom=halve", "--recover=restart"});
  two.world = 2;
  const ProcessResult result = run(two);
  EXPECT_EQ(result.exit_code, 2) << result.err << result.out;
  expect_in(result.err, "--on_oom: several processes go on with a smaller");
  expect_in(result.err, "--recover memory");
}

struct Ranks {
  int world = 2;
  int victim = 1;  // -1: all at once.
  std::string exchange = {};
  std::string pass = {};
  // Buffers are exchanged before a loss: a rank may lose another one first.
  std::string statistics = "--batch_norm=true";
};

class OutOfMemoryOfRanks : public OutOfMemory,
                           public ::testing::WithParamInterface<Ranks> {
 protected:
  ProcessResult run_with(const Training& training) const {
    ProcessOptions options = process_options(training);
    options.environment["LOCKSTEP_EXCHANGE"] = GetParam().exchange;
    return lockstep::testing::run(
        command_of(training) + Words{"--recover", "memory"}, options);
  }
};

TEST_P(OutOfMemoryOfRanks, HasTheBitsOfATrainingResumedWithTheSmallerBatch) {
  const Ranks& ranks = GetParam();
  const Words flags = {"--train_samples=48", "--epochs=2",
                       "--dropout=0.3",      "--own_normaliser",
                       "--ema_decay=0.9",    "--log_every=2",
                       ranks.statistics,     "--on_oom=halve_anyway"};
  Training halved =
      probe("halved", flags + Words{"--batch_size=4", "--memory_steps", "3",
                                    "--memory_rank",
                                    std::to_string(ranks.victim), ranks.pass});
  Training first =
      probe("resumed", flags + Words{"--batch_size=4", "--stop_after_steps=2"});
  Training rest =
      probe("resumed",
            flags + Words{"--batch_size=2", "--gradient_accumulation_steps=2",
                          "--resume=latest", "--stop_after_steps=99"});
  for (Training* training : {&halved, &first, &rest}) {
    training->world = ranks.world;
  }
  const ProcessResult result = run_with(halved);
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(num_halvings(result), ranks.victim < 0 ? ranks.world : 1)
      << result.err << result.out;
  expect_not_in(result.out + result.err, "started again");
  run_with(first);
  const ProcessResult resumed = run_with(rest);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err << resumed.out;
  expect_same_end(halved.folder, rest.folder);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, OutOfMemoryOfRanks,
    ::testing::Values(Ranks{2, 0, "shared", "--memory_in_backward=false"},
                      Ranks{3, 1, "gloo", "--memory_in_backward=true"},
                      Ranks{3, 2, "shared", "--memory_in_backward=true"},
                      Ranks{2, -1, "gloo", "--memory_in_backward=false",
                            "--batch_norm=false"}),
    [](const auto& tested) {
      const Ranks& ranks = tested.param;
      return (ranks.victim < 0 ? "All"
                               : "Rank" + std::to_string(ranks.victim)) +
             "Of" + std::to_string(ranks.world) + ranks.exchange;
    });

TEST_F(OutOfMemory, OfARankBelowOneSampleEndsTheJob) {
  Training two = probe("run", {"--batch_size=2", "--memory_sample=7",
                               "--on_oom=halve", "--epochs=2"});
  two.world = 2;
  const ProcessResult result =
      run(command_of(two) + Words{"--recover", "memory"}, process_options(two));
  EXPECT_EQ(result.exit_code, 7) << result.err << result.out;
  expect_in(result.err, "halved from 2 to 1");
  expect_in(result.err, "batch of 1 per process");
}

}  // namespace
}  // namespace lockstep::testing
