// The recipe scribble learns to segment from strokes alone.
#include <gtest/gtest.h>

#include "distributed/training.h"

namespace lockstep::testing {
namespace {

TEST(ScribbleLearning, TheMeanIouRises) {
  const TempDir temp;
  const Training training{
      .recipe = "scribble",
      .world = 2,
      .folder = temp.path(),
      .flags = {"--data_path=builtin:scribble", "--model_type=res50_ASPP_lorm",
                "--layers=18", "--numclasses=6", "--batchsize=4", "--epochs=2",
                "--lr=1e-2", "--warmup_epoch=0.5", "--l_segs=1",
                "--l_pesudo=0.5", "--l_ds=0.1", "--l_dc=0.1", "--l_lorm=0.1",
                "--sample_every=none"}};
  ProcessOptions options = process_options(training);
  options.timeout_seconds =
      400;  // Two processes on two cores that may be busy.
  const auto result = run(command_of(training), options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto ious = metric(temp.path(), "val/iou");
  ASSERT_EQ(ious.size(), 2U);
  EXPECT_LT(ious.front(), 0.5);
  EXPECT_GT(ious.back(), 0.5);
}

}  // namespace
}  // namespace lockstep::testing
