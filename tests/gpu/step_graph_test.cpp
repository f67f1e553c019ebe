// Steps that are replayed as CUDA graphs, against steps that are launched
// kernel by kernel.
#include "lockstep/step_graph.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/engine/step_recorder.h"
#include "lockstep/fused.h"
#include "lockstep/tensor/stream_scope.h"
#include "support/process.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

using Arguments = std::vector<std::string>;

constexpr const char* kFallback = "cannot be a CUDA graph";

struct GraphCase {
  std::string name = {};
  std::string recipe = {};
  Arguments flags = {};
  std::vector<int> processes = {1};
};

const Arguments kImages = {
    "--data_path=builtin:shapes", "--batch_size=16",  "--depth=2", "--heads=2",
    "--fid_every=1000000",        "--sample_steps=1", "--copies=1"};

std::vector<GraphCase> graph_cases() {
  const auto with = [](Arguments flags, const Arguments& more) {
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  };
  return {
      {"dit", "dit", with(kImages, {"--dim=128", "--precision=bf16"}), {1, 2}},
      {"accumulation", "dit",
       with(kImages, {"--dim=128", "--gradient_accumulation_steps=3"})},
      {"jit_dropout", "jit",
       with(kImages,
            {"--img_size=32", "--dim=128", "--model=JiT-B/4",
             "--precision=fp16", "--attn_dropout=0.1", "--proj_dropout=0.1"})},
      {"jit_text", "jit", {"--data_path=builtin:text", "--batch_size=8"}},
      // The first loss scale overflows: steps are skipped.
      {"tiny_fp16",
       "tiny",
       {"--dropout=0.2", "--precision=fp16", "--max_grad_norm=1",
        "--ema_decay=0.9"},
       {1, 2}},
      {"protein",
       "protein",
       {"--pdb_path=builtin:protein", "--hidden_dim=64"}}};
}

struct GraphRun {
  std::vector<double> losses = {};  // One per step.
  ProcessResult result = {};
};

GraphRun train_case(const GraphCase& graph_case, int processes,
                    const Arguments& more = {}) {
  const TempDir folder;
  Arguments command = {beside_this_program("lockstep"),
                       "train",
                       graph_case.recipe,
                       "--share-gpus",
                       "--nproc",
                       std::to_string(processes),
                       "--log_every=1",
                       "--n_steps=50",
                       "--sample_every=1000000",
                       "--limit_val_batches=1",
                       "--deterministic",
                       "--device=cuda",
                       "--save_dir",
                       folder.path() / "run"};
  command.insert(command.end(), graph_case.flags.begin(),
                 graph_case.flags.end());
  command.insert(command.end(), more.begin(), more.end());
  GraphRun run{.result = lockstep::testing::run(command)};
  EXPECT_EQ(run.result.exit_code, 0) << run.result.out << run.result.err;
  std::ifstream lines(folder.path() / "run" / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record.contains("train/loss") && record["train/loss"].is_number()) {
      run.losses.push_back(record["train/loss"]);
    }
  }
  return run;
}

class StepGraphBits : public ::testing::TestWithParam<GraphCase> {};

TEST_P(StepGraphBits, ReplayedStepsAreThoseOfTheHost) {
  for (const int processes : GetParam().processes) {
    SCOPED_TRACE(processes);
    const GraphRun replayed = train_case(GetParam(), processes);
    EXPECT_EQ((replayed.result.out + replayed.result.err).find(kFallback),
              std::string::npos)
        << replayed.result.out << replayed.result.err;
    const GraphRun launched =
        train_case(GetParam(), processes, {"--no_cuda_graph"});
    EXPECT_GE(replayed.losses.size(), 40U);
    EXPECT_EQ(replayed.losses, launched.losses);
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, StepGraphBits,
                         ::testing::ValuesIn(graph_cases()),
                         [](const auto& tested) { return tested.param.name; });

// Adds up what batches hold.
struct Sum {
  World world = World::from_environment({.device = DeviceChoice::kCuda}, {});
  tensor::StreamScope stream{world.device()};
  engine::StepTimer timer{world.device(), world.status()};
  torch::Tensor total = torch::zeros({}, world.device());
  bool reads_back = false;
  int64_t num_abandoned = 0;

  std::vector<Batch> batches(int64_t size, double value) const {
    const auto options = torch::TensorOptions().device(world.device());
    return {{.tensors = {torch::full({size}, value, options)},
             .seeds = torch::zeros({size}, options.dtype(torch::kLong)),
             .step = {.num_samples = size, .num_micro_batches = 1}}};
  }

  void step(engine::StepRecorder& recorder, int64_t size, double value) {
    recorder.run(batches(size, value),
                 {.run =
                      [this](const std::vector<Batch>& inputs) {
                        timer.forward_begin();
                        const torch::Tensor sum = inputs[0][0].sum();
                        if (reads_back) sum.item<float>();
                        timer.forward_end();
                        total.add_(sum);
                        timer.backward_end();
                        timer.update_end();
                      },
                  .abandon = [this] { ++num_abandoned; }});
    timer.end_step();
  }
};

TEST(StepRecorder, ReplaysAShapeThatItHasSeen) {
  Sum sum;
  engine::StepRecorder recorder(sum.world, sum.timer, {.num_eager_steps = 1});
  double expected = 0;
  for (int i = 1; i <= 10; ++i) {
    sum.timer.begin_step();
    sum.timer.data_end();
    const int64_t size = i % 3 == 0 ? 5 : 8;
    sum.step(recorder, size, i);
    expected += static_cast<double>(i * size);
  }
  EXPECT_EQ(sum.total.item<double>(), expected);
  EXPECT_EQ(recorder.num_graphs(), 2U);
  EXPECT_EQ(recorder.num_replays(), 8);  // Not the first step of each shape.
  EXPECT_EQ(recorder.take_problem(), "");
  const track::StepTimes times = sum.timer.take();
  EXPECT_EQ(times.steps, 10);
  EXPECT_GT(times.forward, 0);
  EXPECT_LT(times.forward, 1);
}

TEST(StepRecorder, AnIdleGraphMakesRoom) {
  Sum sum;
  engine::StepRecorder recorder(sum.world, sum.timer,
                                {.num_eager_steps = 1,
                                 .max_graphs = 2,
                                 .max_idle_steps = 6,
                                 .max_shapes = 4});
  double expected = 0;
  const auto run = [&](int64_t size) {
    sum.timer.begin_step();
    sum.timer.data_end();
    sum.step(recorder, size, 1);
    expected += static_cast<double>(size);
  };
  for (int i = 0; i < 3; ++i) run(3);
  for (int i = 0; i < 3; ++i) run(4);
  EXPECT_EQ(recorder.num_graphs(), 2U);
  for (int i = 0; i < 3; ++i) run(5);
  const int64_t before = recorder.num_replays();  // 5 has to wait.
  for (int i = 0; i < 4; ++i) run(5);
  EXPECT_GT(recorder.num_replays(), before);
  EXPECT_EQ(recorder.num_graphs(), 2U);
  for (int64_t size = 10; size < 30; ++size) run(size);
  EXPECT_EQ(sum.total.item<double>(), expected);
  EXPECT_EQ(recorder.take_problem(), "");
}

TEST(StepRecorder, AStepThatReadsBackRunsEagerlyAndTheProblemIsNamed) {
  Sum sum;
  sum.reads_back = true;
  engine::StepRecorder recorder(sum.world, sum.timer, {.num_eager_steps = 1});
  std::string problem;
  for (int i = 0; i < 5; ++i) {
    sum.timer.begin_step();
    sum.timer.data_end();
    sum.step(recorder, 4, 1);
    problem += recorder.take_problem();
  }
  EXPECT_EQ(sum.total.item<double>(), 20);
  EXPECT_EQ(recorder.num_graphs(), 0U);
  EXPECT_EQ(sum.num_abandoned, 1);  // It is tried once.
  EXPECT_NE(problem, "");
  EXPECT_GT(torch::rand({3}, sum.world.device()).sum().item<float>(), 0);
}

TEST(StepRecorder, AStepWithAFillerRunsEagerly) {
  Sum sum;
  engine::StepRecorder recorder(sum.world, sum.timer, {.num_eager_steps = 1});
  for (int i = 0; i < 5; ++i) {
    sum.timer.begin_step();
    std::vector<Batch> batches = sum.batches(4, 1);
    batches[0].is_filler = true;
    recorder.run(batches, {.run = [](const std::vector<Batch>&) {}});
  }
  EXPECT_EQ(recorder.num_replays(), 0);
}

// The steps of an own loop, with or without graphs.
struct OwnLoop {
  std::vector<float> losses = {};
  std::vector<torch::Tensor> weights = {};
  int64_t num_replays = 0;
  std::string problem = {};
};

OwnLoop run_own_loop(bool has_graphs) {
  const World world =
      World::from_environment({.device = DeviceChoice::kCuda}, {});
  const TrainingStream stream(world);
  torch::manual_seed(5);
  auto options = torch::TensorOptions(world.device());
  torch::Tensor up = torch::randn({128, 32}, options).mul(0.1);
  torch::Tensor down = torch::randn({8, 64}, options).mul(0.1);
  const std::vector<torch::Tensor> weights = {up.requires_grad_(),
                                              down.requires_grad_()};
  AdamW optimizer(weights);
  StepGraph step(
      world, optimizer,
      [&](const StepGraph::Tensors& in) {
        const torch::Tensor hidden = torch::dropout(
            fused_linear_activation(in[0], up, {}, FusedActivation::kSwiGlu),
            0.1, /*train=*/true);
        return torch::mse_loss(fused_linear(hidden, down).to(torch::kFloat),
                               in[1]);
      },
      {.enabled = has_graphs,
       .max_grad_norm = 0.5,
       .autocast = torch::kBFloat16});
  OwnLoop loop;
  for (int i = 1; i <= 50; ++i) {
    // Two shapes of inputs by turns, and a learning rate that changes.
    const int64_t rows = i % 3 == 0 ? 24 : 16;
    const torch::Tensor x =
        torch::arange(rows * 32, options.dtype(torch::kFloat))
            .add(i)
            .sin()
            .view({rows, 32});
    const torch::Tensor loss = step.run(1e-3 * i, {x, x.narrow(1, 0, 8)});
    loop.losses.push_back(loss.item<float>());
  }
  loop.weights = {up.detach().clone(), down.detach().clone()};
  loop.num_replays = step.num_replays();
  loop.problem = step.problem();
  return loop;
}

TEST(StepGraphOfOwnLoop, ReplaysAreTheStepsOfTheHost) {
  const OwnLoop host = run_own_loop(false);
  const OwnLoop graphs = run_own_loop(true);
  EXPECT_EQ(graphs.problem, "");
  EXPECT_EQ(host.num_replays, 0);
  EXPECT_GT(graphs.num_replays, 30);
  EXPECT_EQ(graphs.losses, host.losses);
  for (size_t i = 0; i < host.weights.size(); ++i) {
    EXPECT_TRUE(graphs.weights[i].equal(host.weights[i])) << i;
  }
}

}  // namespace
}  // namespace lockstep::testing
