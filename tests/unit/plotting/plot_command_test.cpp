#include "lockstep/plotting/plot_command.h"

#include <gtest/gtest.h>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/formats/image_grid.h"
#include "lockstep/formats/png.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetrics =
    "{\"step\":1,\"train/loss\":0.75,\"train/epoch\":1,"
    "\"perf/samples_per_second\":100}\n"
    "{\"step\":2,\"train/loss\":0.5,\"train/epoch\":1,"
    "\"perf/samples_per_second\":200}\n"
    "{\"step\":2,\"val/loss\":0.625,\"val/accuracy\":0.875}\n";

// One row of two grey pixels of this level.
std::string grid_png(const std::string& label, uint8_t level) {
  const std::vector<uint8_t> pixels = {level, level};
  return formats::encode_png(
      {.width = 2,
       .height = 1,
       .channels = 1,
       .pixels = pixels,
       .text =
           formats::grid_text({.rows = 1, .columns = 2, .labels = {label}})});
}

class PlotCommandTest : public ::testing::Test {
 protected:
  fs::path add_run(const std::string& name, const std::string& metrics) const {
    const fs::path run = folder_.path() / name;
    fs::create_directories(run / "images");
    if (!metrics.empty()) folder_.write(name + "/metrics.jsonl", metrics);
    return run;
  }

  plotting::PlotOptions options(std::vector<fs::path> runs,
                                const std::string& file) const {
    return {.runs = std::move(runs), .output = folder_.path() / file};
  }

  // The SVG file of these runs.
  std::string svg(const plotting::PlotOptions& options) const {
    const auto output = plotting::plot_runs(options, std::nullopt);
    EXPECT_EQ(output.text, options.output->string() + "\n");
    return base::read_file(*options.output);
  }

  std::string refusal(const plotting::PlotOptions& options) const {
    try {
      plotting::plot_runs(options, std::nullopt);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  const testing::TempDir folder_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(PlotCommandTest, ARunWithoutImagesHasAllItsCurves) {
  const std::string text = svg(options({add_run("a", kMetrics)}, "x.svg"));
  for (const char* part : {">train 0.5<", ">accuracy<", ">validation 0.875<",
                           ">Speed (samples/s)<"}) {
    EXPECT_TRUE(has(text, part)) << part;
  }
}

TEST_F(PlotCommandTest, TheNewestImagesStandBesideTheLoss) {
  const fs::path run = add_run("a", kMetrics);
  folder_.write("a/images/step9_cfg3.0.png", grid_png("nine", 9));
  folder_.write("a/images/step10_cfg3.0.png", grid_png("ten", 10));
  folder_.write("a/images/step10_cfg3.0_ema.png", grid_png("average", 11));
  folder_.write("a/images/step10_cfg3.0_ema.gif", "GIF");
  folder_.write("a/images/step11.png", "damaged");
  folder_.write("a/images/other.png", grid_png("other", 12));
  plotting::PlotOptions titled = options({run}, "x.svg");
  titled.title = "what it draws";
  const std::string text = svg(titled);
  EXPECT_TRUE(has(text, ">average<"));
  EXPECT_TRUE(has(text, ">what it draws<"));
  EXPECT_TRUE(has(text, "<image "));
  EXPECT_FALSE(has(text, ">ten<"));
}

TEST_F(PlotCommandTest, APngIsWrittenToo) {
  const auto asked = options({add_run("a", kMetrics)}, "x.png");
  plotting::plot_runs(asked, std::nullopt);
  EXPECT_EQ(formats::read_png_header(base::read_file(*asked.output)).width,
            1200);
}

TEST_F(PlotCommandTest, RunsAreComparedInWhatAllHave) {
  const fs::path a = add_run("a", kMetrics);
  const fs::path b = add_run(
      "b",
      "{\"step\":4,\"train/loss\":0.25,\"train/epoch\":1,\"val/iou\":1}\n");
  plotting::PlotOptions asked = options({a, b}, "x.svg");
  std::string text = svg(asked);
  EXPECT_TRUE(has(text, ">" + a.string() + "<"));
  EXPECT_TRUE(has(text, ">" + b.string() + "<"));
  EXPECT_TRUE(has(text, ">train/loss<"));
  for (const char* other : {">val/loss<", ">val/iou<", ">train/epoch<"}) {
    EXPECT_FALSE(has(text, other)) << other;
  }
  asked.metrics = {"val/iou", "perf/samples_per_second"};
  text = svg(asked);
  EXPECT_TRUE(has(text, ">val/iou<"));
  EXPECT_TRUE(has(text, ">Speed (samples/s)<"));
  EXPECT_FALSE(has(text, ">train/loss<"));
}

TEST_F(PlotCommandTest, WhatCannotBePlottedIsNamed) {
  const fs::path a = add_run("a", kMetrics);
  const fs::path other = add_run("other", "{\"step\":1,\"val/iou\":1}\n");
  const std::string gone = (folder_.path() / "gone").string();
  EXPECT_EQ(
      refusal(options({gone}, "x.svg")),
      gone + ": there is no such folder; name the --save_dir of a training");
  const fs::path none = add_run("none", "");
  EXPECT_EQ(refusal(options({a, none}, "x.svg")),
            none.string() +
                " has no metrics.jsonl: name the --save_dir of a training");
  const fs::path empty = add_run("empty", "cut off");
  EXPECT_TRUE(has(refusal(options({empty}, "x.svg")), "holds no metrics yet"));
  EXPECT_TRUE(has(refusal(options({a, other}, "x.svg")),
                  "no metric in common; choose some with --metrics:"));
  plotting::PlotOptions unknown = options({a, other}, "x.svg");
  unknown.metrics = {"val/los"};
  EXPECT_TRUE(has(refusal(unknown),
                  "--metrics val/los: no run has it; they "
                  "have train/loss, "));
  EXPECT_TRUE(has(refusal({.runs = {a}}), "name a file with -o"));
  EXPECT_TRUE(has(refusal({.runs = {gone}}), "there is no such folder"));
}

TEST_F(PlotCommandTest, ATerminalShowsLettersOrTheImage) {
  const fs::path run = add_run("a", kMetrics);
  folder_.write("a/images/step1.png", grid_png("ring", 255));
  const std::string letters =
      plotting::plot_runs({.runs = {run}}, plot::TerminalAbility{}).text;
  EXPECT_TRUE(letters.starts_with("r\n@\n\n")) << letters;
  EXPECT_TRUE(has(letters, "train/loss 0.5\n"));
  EXPECT_TRUE(plotting::plot_runs(
                  {.runs = {run}},
                  plot::TerminalAbility{.images = plot::TerminalImages::kKitty})
                  .text.starts_with("\x1b_Gf=100"));
  const std::string table =
      plotting::plot_runs({.runs = {run, run}}, plot::TerminalAbility{}).text;
  EXPECT_TRUE(has(table, "val/accuracy\n         0.875  " + run.string()))
      << table;
}

TEST_F(PlotCommandTest, LettersThatNoFontHasAreWarnedAbout) {
  // U+0378 is not assigned.
  plotting::PlotOptions odd = options({add_run("a", kMetrics)}, "x.png");
  odd.title = "\xcd\xb8";
  EXPECT_TRUE(has(plotting::plot_runs(odd, std::nullopt).warning,
                  "no font on this machine has \xcd\xb8:"));
  odd.output = folder_.path() / "x.svg";
  EXPECT_EQ(plotting::plot_runs(odd, std::nullopt).warning, "");
}

}  // namespace
}  // namespace lockstep
