#include "lockstep/plotting/plot_options.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/plot/comparison.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;

std::string refusal(const Arguments& arguments) {
  try {
    plotting::parse_plot_options(arguments);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(PlotOptions, RunsAndOptionsMayBeMixed) {
  const plotting::PlotOptions options = plotting::parse_plot_options(
      Arguments{"runs/a/", "-o", "x.svg", "runs/b",
                "--metrics=train/loss,val/iou", "--title", "a = b"});
  ASSERT_EQ(options.runs.size(), 2U);
  EXPECT_EQ(options.runs[0], "runs/a");
  EXPECT_EQ(options.runs[1], "runs/b");
  EXPECT_EQ(options.output, "x.svg");
  EXPECT_EQ(options.metrics, (Arguments{"train/loss", "val/iou"}));
  EXPECT_EQ(options.title, "a = b");
  EXPECT_EQ(
      plotting::parse_plot_options(Arguments{"r", "--output=y.png"}).output,
      "y.png");
}

TEST(PlotOptions, HelpNeedsNothingElse) {
  EXPECT_TRUE(plotting::parse_plot_options(Arguments{"-h", "--bad"}).help);
  for (const char* option : {"RUN", "--output", "--metrics", "--title"}) {
    EXPECT_NE(plotting::plot_help().find(option), std::string::npos) << option;
  }
}

TEST(PlotOptions, MistakesAreNamed) {
  EXPECT_EQ(refusal({}),
            "name a run folder: lockstep plot runs/NAME -o FILE.png");
  EXPECT_EQ(refusal({"r", "-o"}),
            "-o: a value is missing; see lockstep plot --help");
  EXPECT_EQ(refusal({"r", "--out", "x.png"}),
            "unknown option --out; see lockstep plot --help");
  EXPECT_EQ(refusal({"r", "-o", "x.jpg"}),
            "--output x.jpg: the file's name must end in .png or .svg");
  EXPECT_EQ(refusal({"r", "--metrics", "val/loss"}),
            "--metrics is for plots of several runs");
  EXPECT_EQ(refusal(Arguments(plot::kMostRuns + 1, "r")),
            "15 runs; at most 14 can be told apart in one plot");
}

}  // namespace
}  // namespace lockstep
