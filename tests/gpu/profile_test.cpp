// --profile on a GPU: kernels, also those of replayed CUDA graphs, by kind.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/base/files.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

Json profile_of(const std::filesystem::path& folder, int processes,
                const Arguments& flags) {
  Arguments command = {beside_this_program("lockstep"),
                       "train",
                       "dit",
                       "--share-gpus",
                       "--nproc",
                       std::to_string(processes),
                       "--device",
                       "cuda",
                       "--n_steps",
                       "20",
                       "--profile",
                       "4",
                       "--data_path=builtin:shapes",
                       "--batch_size",
                       "16",
                       "--depth=2",
                       "--heads=2",
                       "--dim=128",
                       "--precision=bf16",
                       "--copies=1",
                       "--fid_every=1000000",
                       "--sample_every=1000000",
                       "--save_dir",
                       folder.string()};
  command.insert(command.end(), flags.begin(), flags.end());
  const ProcessResult result = run(command);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("recording costs"), std::string::npos)
      << result.out;
  return Json::parse(base::read_file(folder / "profile" / "summary.json"));
}

void expect_known(const Json& summary, size_t ranks) {
  ASSERT_EQ(summary.at("ranks").size(), ranks);
  for (const Json& rank : summary.at("ranks")) {
    double all = 0;
    for (const auto& [kind, ns] : rank.at("ns").items())
      all += ns.get<double>();
    EXPECT_LE(rank.at("ns").at("other").get<double>(), 0.02 * all)
        << rank.dump();
    for (const char* kind : {"products", "attention", "element-wise"}) {
      EXPECT_GT(rank.at("ns").at(kind), 0) << kind << " " << rank.dump();
    }
  }
}

TEST(GpuProfile, KernelsOfReplayedGraphsHaveKinds) {
  const TempDir folder;
  for (const char* graphs : {"--cuda_graph", "--no_cuda_graph"}) {
    const auto place = folder.path() / graphs;
    expect_known(profile_of(place, 1, {graphs}), 1);
    const Json trace =
        Json::parse(base::read_file(place / "profile" / "trace.json"));
    int kernels = 0;
    for (const Json& event : trace.at("traceEvents")) {
      if (event.at("ph") == "X" && event.at("tid") >= 1000) ++kernels;
    }
    EXPECT_GT(kernels, 100) << graphs;
  }
}

TEST(GpuProfile, RanksMergeAndTheirExchangeIsSeen) {
  const TempDir folder;
  const Json summary = profile_of(folder.path() / "run", 2, {});
  expect_known(summary, 2);
  const Json trace = Json::parse(
      base::read_file(folder.path() / "run" / "profile" / "trace.json"));
  std::set<int> ranks;
  int exchanges = 0;
  for (const Json& event : trace.at("traceEvents")) {
    ranks.insert(event.at("pid").get<int>());
    if (event.value("cat", "") == "exchange" && event.at("tid") >= 1000) {
      ++exchanges;
    }
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
  EXPECT_GT(exchanges, 0);
}

}  // namespace
}  // namespace lockstep::testing
