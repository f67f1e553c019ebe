// --profile, and lockstep::Profiler in a loop of one's own.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/base/files.h"
#include "lockstep/lockstep.h"
#include "support/messages.h"
#include "support/process.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

using Json = nlohmann::json;

// Perfetto shows operations of a thread in one row only when they nest.
void expect_nested(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> rows;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts");
    rows[{event.at("pid"), event.at("tid")}].emplace_back(
        begin, -(begin + event.at("dur").get<double>()));
  }
  EXPECT_FALSE(rows.empty());
  for (auto& [row, intervals] : rows) {
    std::ranges::sort(intervals);
    std::vector<double> open;
    for (const auto& [begin, end] : intervals) {
      while (!open.empty() && open.back() <= begin) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(-end, open.back() + 1e-3);
      }
      open.push_back(-end);
    }
  }
}

double unknown_part(const Json& summary) {
  double unknown = 0;
  double all = 0;
  for (const Json& rank : summary.at("ranks")) {
    for (const auto& [kind, ns] : rank.at("ns").items()) {
      all += ns.get<double>();
      if (kind == "other") unknown += ns.get<double>();
    }
  }
  return unknown / all;
}

TEST(Profile, OfATrainingIsATraceOfAllRanksAndATable) {
  const TempDir folder;
  const auto run_folder = folder.path() / "run";
  const ProcessResult result =
      run({LOCKSTEP_PROGRAM, "train", "tiny", "--nproc", "2", "--device", "cpu",
           "--n_steps", "20", "--profile", "4", "--save_dir", run_folder});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "profile of 4 steps on 2 ranks");
  for (const char* kind : {"products", "attention", "element-wise", "exchange",
                           "copies", "data", "host", "recording costs"}) {
    expect_in(result.out, kind);
  }
  const auto profile = run_folder / "profile";
  const Json trace = Json::parse(base::read_file(profile / "trace.json"));
  expect_nested(trace);
  std::set<int> ranks;
  int steps = 0;
  for (const Json& event : trace.at("traceEvents")) {
    ranks.insert(event.at("pid").get<int>());
    if (event.at("name") == "lockstep::data" && event.at("pid") == 0) ++steps;
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
  EXPECT_EQ(steps, 4);
  for (const char* name : {"rank0.json", "rank1.json"}) {
    expect_nested(Json::parse(base::read_file(profile / name)));
  }
  const Json summary = Json::parse(base::read_file(profile / "summary.json"));
  EXPECT_LE(unknown_part(summary), 0.02);
  for (const Json& rank : summary.at("ranks")) {
    EXPECT_GT(rank.at("ns").at("products"), 0);
    EXPECT_GT(rank.at("ns").at("exchange"), 0);
  }
}

TEST(Profile, OfAShortTrainingIsRefusedWithAReason) {
  const TempDir folder;
  const ProcessResult result =
      run({LOCKSTEP_PROGRAM, "train", "tiny", "--device", "cpu", "--n_steps",
           "3", "--profile", "4", "--save_dir", folder.path() / "run"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out + result.err, "nothing was recorded");
}

TEST(Profile, OfAnOwnLoopNeedsOneCallPerStep) {
  const TempDir folder;
  run_ranks(
      {.size = 2, .environment = {{"PROFILE_FOLDER", folder.path().string()}}},
      [](const World& world) {
        auto net = std::make_shared<torch::nn::LinearImpl>(64, 64);
        DistributedDataParallel<torch::nn::LinearImpl> ddp(net, world);
        torch::optim::SGD optimizer(net->parameters(), 0.01);
        const std::filesystem::path place = std::getenv("PROFILE_FOLDER");
        Profiler profiler(world,
                          {.num_steps = 3, .warmup_steps = 2, .folder = place});
        for (int step = 0; step < 8; ++step) {
          ddp(torch::randn({32, 64})).square().mean().backward();
          optimizer.step();
          net->zero_grad();
          profiler.step();
          EXPECT_EQ(profiler.is_done(), step >= 4);
        }
        if (!world.is_main()) {
          EXPECT_EQ(profiler.table(), "");
          return;
        }
        expect_in(profiler.table(), "profile of 3 steps on 2 ranks");
        const Json summary =
            Json::parse(base::read_file(place / "summary.json"));
        EXPECT_EQ(summary.at("ranks").size(), 2U);
        EXPECT_LE(unknown_part(summary), 0.02);
        EXPECT_TRUE(std::filesystem::exists(place / "trace.json"));
      });
}

TEST(Profile, OfNoStepsIsAnError) {
  run_ranks({.size = 1}, [](const World& world) {
    EXPECT_THROW(Profiler(world, {.num_steps = 0}), ConfigError);
    Profiler dropped(world, {.num_steps = 9, .warmup_steps = 1});
    dropped.step();  // Its recording is dropped with it.
  });
}

}  // namespace
}  // namespace lockstep::testing
