// --shard_optimizer: ranks that share one copy of the model train as ranks that
// have one each.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <csignal>
#include <random>
#include <thread>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/comm/shared_tensors.h"
#include "lockstep/error.h"
#include "lockstep/lockstep.h"
#include "lockstep/optim/gradient_step.h"
#include "lockstep/parallel/sharded_update.h"
#include "support/ranks.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

const std::string kFlag = "--shard_optimizer";

// All but the settings.
Tree saved(const fs::path& path) {
  Tree tree = load_checkpoint(path);
  tree["lockstep"]["config"] = Tree::dict();
  return tree;
}

void expect_same_run(const fs::path& actual, const fs::path& expected) {
  EXPECT_EQ(metric_lines(actual), metric_lines(expected));
  size_t num_checkpoints = 0;
  for (const std::string& name : files_below(expected)) {
    if (!name.ends_with(".pt") && !name.ends_with(".pth")) continue;
    expect_equal(saved(actual / name), saved(expected / name), name);
    ++num_checkpoints;
  }
  EXPECT_GT(num_checkpoints, 0U);
}

pid_t read_pid(const fs::path& path) {
  const auto text = base::try_read_file(path).value_or("");
  return static_cast<pid_t>(base::parse_integer(text).value_or(0));
}

struct Case {
  std::string name;
  std::string recipe = "tiny";
  int world = 2;
  Words flags = {};
};

class ShardedTraining : public ::testing::TestWithParam<Case> {};

TEST_P(ShardedTraining, HasTheBitsOfOneThatIsNot) {
  const TempDir temp;
  Training training{.recipe = GetParam().recipe,
                    .world = GetParam().world,
                    .folder = temp.path() / "whole",
                    .flags = GetParam().flags};
  run_well(training);
  training.folder = temp.path() / "sharded";
  training.flags.push_back(kFlag);
  run_well(training);
  expect_same_run(temp.path() / "sharded", temp.path() / "whole");
}

const Words kTiny = {"--n_steps=12",           "--train_samples=40",
                     "--val_samples=10",       "--val_every=5",
                     "--global_batch_size=12", "--width=64",
                     "--log_every=1"};
const Words kAverages = {"--ema_decay", "0.9", "0.99"};

INSTANTIATE_TEST_SUITE_P(
    Cases, ShardedTraining,
    ::testing::Values(
        Case{.name = "ClippedAdamW",
             .flags = kTiny + kAverages + Words{"--max_grad_norm=0.1"}},
        Case{.name = "ClippedAdamWOf3Ranks",
             .world = 3,
             .flags = kTiny + kAverages + Words{"--max_grad_norm=0.1"}},
        // More ranks than some have elements to update.
        Case{.name = "MoreRanksThanElements",
             .recipe = "probe",
             .world = 4,
             .flags = {"--epochs=2"}},
        Case{.name = "AdamInDoubles",
             .flags = kTiny + Words{"--optimizer=adam", "--precision=fp64"}},
        Case{.name = "SgdInHalfPrecision",
             .flags = kTiny + Words{"--optimizer=sgd", "--precision=bf16"}},
        Case{.name = "SgdWithoutMomentum",
             .flags = kTiny + Words{"--optimizer=sgd", "--momentum=0"}},
        // A norm that is corrected, and a step that is skipped.
        Case{.name = "ASkippedStep",
             .recipe = "probe",
             .flags = kAverages + Words{"--own_normaliser", "--epochs=2",
                                        "--max_grad_norm=0.1",
                                        "--nan_sample=7"}},
        // Images drawn with an average, groups with and without weight decay.
        Case{.name = "ImagesOfAnAverage",
             .recipe = "dit",
             .flags = {"--data_path=builtin:shapes", "--dim=64", "--depth=1",
                       "--heads=2", "--patch=8", "--n_steps=3",
                       "--sample_every=2", "--sample_steps=2",
                       "--limit_val_batches=1", "--global_batch_size=8",
                       "--no_use_wandb", "--log_every=1"}},
        // Convolutions, SyncBatchNorm, learning rates per group.
        Case{.name = "SyncBatchNorms",
             .recipe = "scribble",
             .flags = {"--data_path=builtin:scribble",
                       "--model_type=res50_ASPP_lorm", "--layers=18",
                       "--numclasses=6", "--sample_every=none", "--log_every=1",
                       "--global_batch_size=4", "--n_steps=2", "--crop_size=65",
                       "--limit_val_batches=1"}}),
    [](const auto& test) { return test.param.name; });

TEST(ShardedOptimizer, ARunMayBeginWithItAndGoOnWithout) {
  const TempDir temp;
  const Words flags = kTiny + kAverages + Words{"--save_every=4"};
  run_well({.world = 2, .folder = temp.path() / "whole", .flags = flags});
  for (const bool is_first : {true, false}) {
    SCOPED_TRACE(is_first);
    const fs::path folder = temp.path() / (is_first ? "first" : "second");
    run_well({.world = 2,
              .folder = folder,
              .flags = flags + Words{"--n_steps=6"} +
                       (is_first ? Words{kFlag} : Words{})});
    run_well(
        {.world = 2,
         .folder = folder,
         .flags = flags + Words{"--resume=latest",
                                is_first ? "--no_shard_optimizer" : kFlag}});
    expect_equal(learned(last_checkpoint(folder)),
                 learned(last_checkpoint(temp.path() / "whole")));
  }
}

TEST(ShardedOptimizer, KilledRanksLoseNothingThatWasSaved) {
  const TempDir temp;
  const auto training = [&](const std::string& name) {
    return Training{.recipe = "probe",
                    .world = 2,
                    .folder = temp.path() / name,
                    .flags = {kFlag, "--epochs=20", "--batch_size=2",
                              "--save_every=1", "--log_every=1"}};
  };
  run_well(training("whole"));
  std::mt19937 random(1);
  for (int kill_number = 0; kill_number < 6; ++kill_number) {
    Training killed = training("killed");
    const fs::path record =
        temp.path() / ("record" + std::to_string(kill_number));
    fs::create_directory(record);
    killed.flags = killed.flags + Words{"--resume=latest", "--record", record};
    Process process(command_of(killed), process_options(killed));
    pid_t pid = 0;
    const auto is_training = [&] {
      pid = read_pid(record / "pid_1");
      return pid > 0 && fs::exists(record / "rank_1.txt");
    };
    ASSERT_TRUE(wait_for(is_training, 200)) << process.err();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
    kill(pid, SIGKILL);
    process.wait();
    EXPECT_TRUE(wait_until_gone(process.marker(), 60).empty());
  }
  Training resumed = training("killed");
  resumed.flags.push_back("--resume=latest");
  run_well(resumed);
  expect_equal(learned(last_checkpoint(temp.path() / "killed")),
               learned(last_checkpoint(temp.path() / "whole")));
}

// The worst moment: rank 0 has written its part of the weights, and rank 1 is
// killed before its own. The only copy then has values of two steps.
TEST(ShardedOptimizer, AKillWithinAnUpdateIsRepairedByTheRestart) {
  const TempDir temp;
  const auto training = [&](const std::string& name) {
    // So many units that both ranks have a part.
    return Training{.recipe = "probe",
                    .world = 2,
                    .folder = temp.path() / name,
                    .flags = {kFlag, "--hidden=1024", "--epochs=4",
                              "--batch_size=2", "--save_every=1"}};
  };
  run_well(training("whole"));
  const fs::path record = temp.path() / "record";
  fs::create_directory(record);
  Training killed = training("killed");
  killed.flags = killed.flags + Words{"--record", record, "--pause_in=update",
                                      "--pause_call=7", "--late_rank=1"};
  Process process(command_of(killed), process_options(killed));
  const auto is_within = [&] {
    return fs::exists(record / "updated_0") &&
           read_pid(record / "paused_1") > 0;
  };
  ASSERT_TRUE(wait_for(is_within, 200)) << process.err();
  kill(read_pid(record / "paused_1"), SIGKILL);
  EXPECT_NE(process.wait().exit_code, 0);
  EXPECT_TRUE(wait_until_gone(process.marker(), 60).empty());
  // Nothing of step 8 was saved: it never ended.
  const Tree last = last_checkpoint(temp.path() / "killed");
  EXPECT_LE(last.at("global_step").as_int(), 7);

  Training resumed = training("killed");
  resumed.flags.push_back("--resume=latest");
  run_well(resumed);
  expect_equal(learned(last_checkpoint(temp.path() / "killed")),
               learned(last_checkpoint(temp.path() / "whole")));
}

TEST(ShardedOptimizer, WithoutSharedMemoryItIsRefused) {
  const TempDir temp;
  const Training training{
      .world = 2, .folder = temp.path() / "run", .flags = kTiny + Words{kFlag}};
  ProcessOptions options = process_options(training);
  options.environment["LOCKSTEP_EXCHANGE"] = "gloo";
  const ProcessResult result = run(command_of(training), options);
  EXPECT_NE(result.exit_code, 0);
  expect_in(result.out + result.err,
            "--shard_optimizer needs CPU processes of one machine that share "
            "memory, and these do not");
}

TEST(ShardedOptimizer, AllRanksSeeOneCopyAndAScopeOfAveragesIsTheirOwn) {
  run_ranks({.size = 3}, [](const World& world) {
    torch::manual_seed(world.rank());  // Rank 0's values count.
    const auto weight = torch::randn({5000}).requires_grad_();
    AdamW optimizer({weight});
    std::vector<Ema> averages;
    averages.emplace_back(std::vector<at::Tensor>{weight},
                          EmaConfig{.decay = 0.5});
    parallel::ShardedUpdate update(world, optimizer, averages, 0);
    weight.mutable_grad() = torch::ones({5000});
    update.run({});
    EXPECT_FALSE(weight.grad().defined());
    at::Tensor mean = weight.detach().clone();
    world.all_reduce(mean, ReduceOp::kMean);
    EXPECT_LT((mean - weight).abs().max().item<double>(), 1e-6);

    const at::Tensor trained = weight.detach().clone();
    if (world.rank() == 1) {
      const EmaScope scope(averages[0]);
      EXPECT_TRUE(torch::equal(weight, averages[0].averages()[0]));
      EXPECT_FALSE(torch::equal(weight, trained));
      world.any(true);
      world.any(true);
    } else {
      world.any(true);  // Rank 1 is inside its scope.
      EXPECT_TRUE(torch::equal(weight, trained));
      world.any(true);
    }
    EXPECT_TRUE(torch::equal(weight, trained));

    world.any(true);
    if (world.rank() == 2) weight.detach()[17] = 4;
    world.any(true);
    EXPECT_EQ(weight[17].item<float>(), 4);
  });
}

// A part that only some steps use, so that gradients come and go.
struct BranchedImpl : torch::nn::Module {
  torch::nn::Linear first =
      register_module("first", torch::nn::Linear(300, 200));
  torch::nn::Linear side = register_module("side", torch::nn::Linear(200, 200));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(200, 170));

  torch::Tensor forward(const torch::Tensor& input, bool has_side) {
    const auto hidden = torch::relu(first(input));
    return last(has_side ? hidden + side(hidden) : hidden);
  }
};

std::vector<at::Tensor> gradients_of(const torch::nn::Module& net) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : net.parameters()) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

// Whether a rank has more than sums of its own share.
bool has_all_sums(const World& world, const torch::nn::Module& net) {
  bool is_same = true;
  for (const at::Tensor& gradient : gradients_of(net)) {
    at::Tensor mean = gradient.clone();
    world.all_reduce(mean, ReduceOp::kMean);
    is_same = is_same && (mean - gradient).abs().max().item<double>() <=
                             1e-5 * mean.abs().max().item<double>();
  }
  return is_same;
}

TEST(ShardedOptimizer, ARankGetsTheSumsOfItsShareAlone) {
  for (const int size : {2, 3}) {
    run_ranks({.size = size}, [](const World& world) {
      torch::manual_seed(1);
      auto whole = std::make_shared<BranchedImpl>();
      torch::manual_seed(1);
      auto sharded = std::make_shared<BranchedImpl>();
      const DdpConfig config{.find_unused_parameters = true};
      DistributedDataParallel<BranchedImpl> whole_ddp(whole, world, config);
      DistributedDataParallel<BranchedImpl> sharded_ddp(sharded, world, config);
      AdamW whole_optimizer(whole->parameters());
      AdamW sharded_optimizer(sharded->parameters());
      std::vector<Ema> averages;
      averages.emplace_back(sharded->parameters());
      std::optional<parallel::ShardedUpdate> update;
      update.emplace(world, sharded_optimizer, averages, 0.1);
      torch::manual_seed(2 + world.rank());
      for (int step = 0; step < 9; ++step) {
        SCOPED_TRACE(step);
        const bool has_side = step % 3 != 1;
        // Micro-batches that are summed before the exchange.
        for (const bool is_last : {false, true}) {
          const auto input = torch::randn({8, 300});
          const auto quiet = whole_ddp.no_sync(!is_last);
          const auto sharded_quiet = sharded_ddp.no_sync(!is_last);
          whole_ddp(input, has_side).square().mean().backward();
          sharded_ddp(input, has_side).square().mean().backward();
        }
        // The Reducer finds its buckets in the first step.
        if (step == 0) {
          EXPECT_TRUE(has_all_sums(world, *sharded));
        }
        if (step >= 4) {
          EXPECT_FALSE(has_all_sums(world, *sharded));
        }
        const auto report =
            optim::prepare_gradients(whole->parameters(), {}, 0.1);
        whole_optimizer.step_and_clear(report.found_inf);
        const auto sharded_report = update->run({});
        EXPECT_TRUE(torch::equal(report.norm, sharded_report.norm));
        for (size_t i = 0; i < whole->parameters().size(); ++i) {
          EXPECT_TRUE(
              torch::equal(whole->parameters()[i], sharded->parameters()[i]))
              << "parameter " << i;
        }
      }
      // Without it, sums are whole again.
      update.reset();
      sharded_ddp(torch::randn({8, 300}), true).square().mean().backward();
      EXPECT_TRUE(has_all_sums(world, *sharded));
    });
  }
}

TEST(ShardedOptimizer, TooLittleMemoryIsAnErrorOfEveryRank) {
  run_ranks({.size = 2}, [](const World& world) {
    // More than the addresses that a rank reserves.
    const auto huge = torch::zeros({1}).expand({int64_t{1} << 35});
    EXPECT_THROW(comm::make_shared_tensors(world, {huge}), Error);
  });
}

}  // namespace
}  // namespace lockstep::testing
