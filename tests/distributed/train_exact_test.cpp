// A training does not depend on how its work is split.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <numeric>
#include <set>

#include "distributed/probe_recipe.h"
#include "distributed/training.h"
#include "lockstep/config/parse.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/random.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

// The last step of an epoch has one sample in place of 12: some ranks have
// none.
const Words kTiny = {"--precision=fp64", "--train_samples=37",
                     "--val_samples=10", "--epochs=2",
                     "--log_every=1",    "--augment"};

void expect_same_training(const std::filesystem::path& actual,
                          const std::filesystem::path& expected,
                          double tolerance) {
  for (const char* name :
       {"train/loss", "val/loss", "val/accuracy", "train/epoch_loss"}) {
    SCOPED_TRACE(name);
    expect_close(metric(actual, name), metric(expected, name), tolerance);
  }
  // A float.
  expect_close(metric(actual, "train/grad_norm"),
               metric(expected, "train/grad_norm"), 1e-5);
}

TEST(TrainExact, WorldsOf1And2And4TrainTheSameWay) {
  const TempDir temp;
  for (const int world : {1, 2, 4}) {
    run_well({.world = world,
              .folder = temp.path() / std::to_string(world),
              .flags = kTiny + Words{"--global_batch_size=12"}});
  }
  const auto losses = metric(temp.path() / "1", "train/loss");
  ASSERT_EQ(losses.size(), 8U);
  EXPECT_NE(losses.front(), losses.back());
  expect_same_training(temp.path() / "2", temp.path() / "1", 1e-10);
  expect_same_training(temp.path() / "4", temp.path() / "1", 1e-10);
}

TEST(TrainExact, AccumulationIsOneLargeBatch) {
  const TempDir temp;
  run_well({.folder = temp.path() / "whole",
            .flags = kTiny + Words{"--batch_size=12"}});
  run_well({.folder = temp.path() / "parts",
            .flags = kTiny + Words{"--batch_size=4",
                                   "--gradient_accumulation_steps=3"}});
  expect_same_training(temp.path() / "parts", temp.path() / "whole", 1e-12);
}

TEST(TrainExact, AnOwnNormaliserDoesNotDependOnTheSplit) {
  const TempDir temp;
  const Words flags = {"--own_normaliser", "--precision=fp64", "--epochs=2",
                       "--train_samples=28"};
  run_well({.recipe = "probe",
            .folder = temp.path() / "whole",
            .flags = flags + Words{"--batch_size=12"}});
  run_well({.recipe = "probe",
            .folder = temp.path() / "parts",
            .flags = flags + Words{"--batch_size=1",
                                   "--gradient_accumulation_steps=12"}});
  run_well({.recipe = "probe",
            .world = 3,
            .folder = temp.path() / "ranks",
            .flags = flags + Words{"--batch_size=2",
                                   "--gradient_accumulation_steps=2"}});
  for (const char* name : {"parts", "ranks"}) {
    SCOPED_TRACE(name);
    for (const char* value : {"train/loss", "train/plain", "val/loss"}) {
      expect_close(metric(temp.path() / name, value),
                   metric(temp.path() / "whole", value), 1e-12);
    }
  }
}

// The same training as anybody would write it: no recipe loop, no ranks.
struct PlainLoop {
  std::vector<double> losses = {};
  std::vector<double> normalisers = {};
  at::Tensor weights = {};

  void train(const Words& flags, const std::vector<int64_t>& batch_sizes) {
    ProbeRecipe recipe;
    Settings settings;
    recipe.describe(settings);
    settings.options.refresh_defaults();
    config::parse_command(settings.options, flags);
    torch::manual_seed(settings.common.seed);
    const auto task = recipe.build(settings, Purpose::kTrain);
    const auto data = task->data().train;
    const auto model = task->model();
    model->to(torch::kDouble);
    torch::optim::SGD optimizer(
        model->parameters(),
        torch::optim::SGDOptions(settings.common.optimization.lr)
            .momentum(0.9));
    for (const int64_t epoch : {0, 1}) {
      const auto order =
          DistributedSampler(data->size(), Shard{}, {}).indices(epoch);
      auto next = order.begin();
      for (const int64_t size : batch_sizes) {
        step(*task, *data, {next, next + size}, epoch);
        optimizer.step();
        optimizer.zero_grad();
        next += size;
      }
    }
    weights = model->named_parameters()["first.weight"].flatten().detach();
  }

  void step(Task& task, const Dataset& data, std::vector<int64_t> indices,
            int64_t epoch) {
    std::vector<Sample> samples;
    std::vector<int64_t> seeds;
    for (const int64_t index : indices) {
      const uint64_t seed = sample_seed(0, epoch, index);
      seeds.push_back(static_cast<int64_t>(seed));
      samples.push_back(data.get(index, seed));
    }
    Batch batch{.tensors = data.collate(samples), .indices = indices};
    for (at::Tensor& tensor : batch.tensors) tensor = tensor.to(torch::kDouble);
    SampleRandom random(torch::tensor(seeds, torch::kLong));
    const Loss result = task.loss(batch, random);
    const double normaliser = result.normaliser.defined()
                                  ? result.normaliser.item<double>()
                                  : static_cast<double>(indices.size());
    at::Tensor loss;
    if (result.sum.defined()) {
      loss = result.sum / normaliser;
    } else {
      loss = torch::zeros({}, torch::kDouble);
      for (const LossTerm& term : result.terms) {
        loss = loss + term.weight * term.sum / term.normaliser;
      }
    }
    loss.backward();
    losses.push_back(loss.item<double>());
    normalisers.push_back(normaliser);
  }
};

// The last of 10, 10 and 3 samples are 2 of one rank and 1 of the other.
void expect_as_plain_loop(const Words& flags) {
  PlainLoop plain;
  plain.train(flags, {10, 10, 3});
  const TempDir temp;
  run_well(
      {.recipe = "probe", .world = 2, .folder = temp.path(), .flags = flags});
  expect_close(metric(temp.path(), "train/loss"), plain.losses, 1e-12);
  const Tree checkpoint = last_checkpoint(temp.path());
  const at::Tensor difference =
      weight(checkpoint, "first.weight").flatten() - plain.weights;
  EXPECT_LT(difference.abs().max().item<double>(), 1e-12);
  // An epoch's mean weighs all samples alike, too.
  double sum = 0;
  double weight = 0;
  for (const size_t step : {0, 1, 2}) {
    sum += plain.losses[step] * plain.normalisers[step];
    weight += plain.normalisers[step];
  }
  EXPECT_NEAR(metric(temp.path(), "train/epoch_loss").at(0), sum / weight,
              1e-12);
}

const Words kPlain = {"--precision=fp64", "--epochs=2", "--batch_size=5",
                      "--train_samples=23", "--optimizer=sgd"};

TEST(TrainExact, ASmallerLastStepCountsByItsTrueSize) {
  expect_as_plain_loop(kPlain);
}

TEST(TrainExact, AnOwnNormaliserDividesTheWholeStep) {
  expect_as_plain_loop(kPlain + Words{"--own_normaliser"});
}

// Each term has its own denominator, summed over ranks of different size.
TEST(TrainExact, TermsAreDividedByTheNormalisersOfAllRanks) {
  expect_as_plain_loop(kPlain + Words{"--loss_terms"});
}

TEST(TrainExact, TheSameRunTwiceGivesTheSameBits) {
  const TempDir temp;
  for (const char* name : {"a", "b"}) {
    run_well({.world = 2,
              .folder = temp.path() / name,
              .flags = {"--train_samples=40", "--val_samples=10", "--epochs=2",
                        "--batch_size=8", "--log_every=1", "--dropout=0.3",
                        "--ema_decay", "0.9", "0.99", "--deterministic",
                        "--max_grad_norm=0.5"}});
  }
  EXPECT_EQ(metric_lines(temp.path() / "a"), metric_lines(temp.path() / "b"));
  EXPECT_EQ(metric(temp.path() / "a", "train/loss").size(), 6U);
  expect_equal(learned(last_checkpoint(temp.path() / "a")),
               learned(last_checkpoint(temp.path() / "b")));
}

TEST(TrainExact, TheDataOrderDoesNotDependOnTheWorld) {
  std::vector<std::vector<int64_t>> alone;
  for (const int world : {1, 3}) {
    const TempDir temp;
    run_well({.recipe = "probe",
              .world = world,
              .folder = temp.path() / "run",
              .flags = {"--global_batch_size=9", "--epochs=2", "--record",
                        temp.path().string()}});
    const auto steps = samples_of_steps(temp.path(), world);
    ASSERT_EQ(steps.size(), 6U);
    for (const size_t epoch : {0, 1}) {
      std::multiset<int64_t> seen;
      for (size_t i = 3 * epoch; i < 3 * epoch + 3; ++i) {
        seen.insert(steps[i].begin(), steps[i].end());
      }
      std::multiset<int64_t> all;
      for (int64_t i = 0; i < 24; ++i) all.insert(i);
      EXPECT_EQ(seen, all) << "epoch " << epoch << " of world " << world;
    }
    if (world == 1) {
      alone = steps;
      EXPECT_NE(steps[0], steps[3]) << "epochs have different orders";
    }
    EXPECT_EQ(steps, alone);
  }
}

TEST(TrainExact, DropLastLeavesOutTheStepThatIsNotFull) {
  const TempDir temp;
  run_well({.recipe = "probe",
            .folder = temp.path() / "run",
            .flags = {"--batch_size=10", "--epochs=2", "--drop_last",
                      "--record", temp.path().string()}});
  const auto steps = samples_of_steps(temp.path(), 1);
  ASSERT_EQ(steps.size(), 4U);
  for (const auto& step : steps) EXPECT_EQ(step.size(), 10U);
}

}  // namespace
}  // namespace lockstep::testing
