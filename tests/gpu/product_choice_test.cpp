// The algorithms of products that a training has timed: kept by its
// checkpoints, taken by the run that resumes it, and never timed where bits
// must repeat.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/checkpoint.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// The newest checkpoint's choice after a training of two ranks; empty if it
// has none.
std::string train(const fs::path& folder, int num_steps, const Words& more) {
  Words command = {beside_this_program("lockstep"),
                   "train",
                   "dit",
                   "--share-gpus",
                   "--nproc=2",
                   "--device=cuda",
                   "--data_path=builtin:shapes",
                   "--batch_size=8",
                   "--depth=2",
                   "--dim=128",
                   "--heads=2",
                   "--copies=1",
                   "--sample_steps=1",
                   "--fid_every=1000000",
                   "--sample_every=1000000",
                   "--limit_val_batches=1",
                   "--precision=bf16",
                   "--n_steps=" + std::to_string(num_steps),
                   "--save_dir",
                   folder};
  command.insert(command.end(), more.begin(), more.end());
  const ProcessResult result = lockstep::testing::run(command);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  fs::path newest;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".pt" || file.is_symlink()) continue;
    if (newest.empty() || fs::last_write_time(newest) < file.last_write_time())
      newest = file.path();
  }
  if (newest.empty()) {
    ADD_FAILURE() << "no checkpoint in " << folder;
    return "";
  }
  const Tree tree = load_checkpoint(newest);
  const auto text = TreeView(tree).at("lockstep").find("product_algorithms");
  return text ? text->as_string() : "";
}

TEST(GpuProductChoice, AResumedRunTakesIt) {
  const TempDir folder;
  const std::string first = train(folder.path() / "run", 3, {});
  // The machine, then a line for each product of the first step.
  EXPECT_NE(first.find(", cuBLASLt "), std::string::npos) << first;
  EXPECT_GT(std::ranges::count(first, '\n'), 10) << first;
  EXPECT_EQ(train(folder.path() / "run", 6, {"--resume=latest"}), first);
}

TEST(GpuProductChoice, DeterministicRunsTimeNothing) {
  const TempDir folder;
  EXPECT_EQ(train(folder.path() / "run", 2, {"--deterministic"}), "");
}

}  // namespace
}  // namespace lockstep::testing
