// What trackers write is read by those it is made for: events by TensorBoard's
// own reader and by its web server, asked as a browser asks it; metrics.csv by
// Python's csv; plots by an XML parser and Pillow.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lockstep/formats/png.h"
#include "lockstep/track/csv_file.h"
#include "lockstep/track/metrics_file.h"
#include "lockstep/track/plot_tracker.h"
#include "lockstep/track/tensorboard.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

std::string ask_python(const std::string& script,
                       const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {TORCH_PYTHON,
                                      PYTHON_SCRIPTS "/" + script};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto result =
      testing::run(command, {.environment = {{"CUDA_VISIBLE_DEVICES", ""}}});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  return result.out;
}

std::string image(int width, int height, uint8_t shade) {
  const std::vector<uint8_t> pixels(size_t(width * height * 3), shade);
  return formats::encode_png(
      {.width = width, .height = height, .pixels = pixels});
}

track::Record record_of(int64_t step, double loss) {
  return {.step = step,
          .unix_time = 1.7e9 + double(step),
          .metrics = {{"train/loss", loss}, {"train/lr", 0.5}}};
}

// Steps 1 to 4 with everything; 3 and 4 are to be done again.
void write_first_part(const std::filesystem::path& folder) {
  track::TensorBoardTracker tracker({.folder = folder});
  tracker.record(
      {.step = 0,
       .unix_time = 1.7e9,
       .texts = {{.title = "config", .text = "**lr** 0.5 \xc3\xa9"}}});
  for (int64_t step = 1; step <= 4; ++step) {
    tracker.record(record_of(step, 1.0 / double(step)));
  }
  tracker.record({.step = 2,
                  .unix_time = 1.7e9 + 2,
                  .metrics = {{"val/loss", 2.25}},
                  .images = {{.title = "samples", .png = image(7, 5, 40)}}});
  tracker.record({.step = 4,
                  .unix_time = 1.7e9 + 4,
                  .metrics = {{"val/loss", 9}},
                  .images = {{.title = "samples", .png = image(7, 5, 80)}}});
}

// Goes on behind step 2 with other values.
void write_second_part(const std::filesystem::path& folder) {
  track::TensorBoardTracker tracker(
      {.folder = folder, .kept = track::KeptRecords{.last_step = 2}});
  for (int64_t step = 3; step <= 5; ++step) {
    tracker.record(record_of(step, 10.0 * double(step)));
  }
  tracker.record({.step = 4,
                  .unix_time = 1.7e9 + 4,
                  .metrics = {{"val/loss", 7}},
                  .images = {{.title = "samples", .png = image(9, 6, 80)}}});
}

TEST(TensorBoardInterop, EveryStepIsShownOnceByValue) {
  const TempDir folder;
  write_first_part(folder.path() / "run");
  write_second_part(folder.path() / "run");
  EXPECT_EQ(ask_python("tensorboard_events.py", {folder.path() / "run"}),
            "scalar train/loss 1:1 2:0.5 3:30 4:40 5:50\n"
            "scalar train/lr 1:0.5 2:0.5 3:0.5 4:0.5 5:0.5\n"
            "scalar val/loss 2:2.25 4:7\n"
            "image samples 2:7x5 shade 40 4:9x6 shade 80\n"
            "text config 0:**lr** 0.5 \xc3\xa9\n");
}

TEST(TensorBoardInterop, WhatIsDoneAgainAtTheLastStepIsShownOnce) {
  const TempDir folder;
  write_first_part(folder.path() / "run");
  const std::string metrics =
      folder.write("metrics.jsonl",
                   "{\"step\":1,\"train/loss\":1.0}\n"
                   "{\"step\":2,\"train/loss\":0.5,\"train/lr\":0.5}\n");
  track::TensorBoardTracker tracker(
      {.folder = folder.path() / "run",
       .kept = track::KeptRecords{.last_step = 2, .redone = "val/"},
       .metrics = metrics});
  tracker.record({.step = 2,
                  .metrics = {{"val/loss", 2.5}},
                  .images = {{.title = "samples", .png = image(7, 5, 41)}}});
  EXPECT_EQ(ask_python("tensorboard_events.py", {folder.path() / "run"}),
            "scalar train/loss 1:1 2:0.5\n"
            "scalar train/lr 1:0.5 2:0.5\n"
            "scalar val/loss 2:2.5\n"
            "image samples 2:7x5 shade 41\n"
            "text config 0:**lr** 0.5 \xc3\xa9\n");
}

TEST(TensorBoardInterop, NumbersThatAreNoneAndOddNamesAreRead) {
  const TempDir folder;
  track::TensorBoardTracker({.folder = folder.path()})
      .record({.step = int64_t{1} << 40,
               .metrics = {{"nan", NAN},
                           {"low", -INFINITY},
                           {"big", 1e300},
                           {"a\xff b/\xc3\xa9", 1}}});
  EXPECT_EQ(ask_python("tensorboard_events.py", {folder.path()}),
            "scalar a\xef\xbf\xbd b/\xc3\xa9 1099511627776:1\n"
            "scalar big 1099511627776:inf\n"
            "scalar low 1099511627776:-inf\n"
            "scalar nan 1099511627776:nan\n");
}

// Its two readers find repeated steps in different ways.
TEST(TensorBoardInterop, ItsWebServerShowsScalarsImagesAndTexts) {
  const TempDir folder;
  write_first_part(folder.path() / "run");
  write_second_part(folder.path() / "run");
  for (const char* load_fast : {"true", "false"}) {
    EXPECT_EQ(ask_python("tensorboard_server.py", {folder.path(), load_fast}),
              "scalars run: train/loss train/lr val/loss\n"
              "train/loss 1:1.0 2:0.5 3:30.0 4:40.0 5:50.0\n"
              "val/loss 2:2.25 4:7.0\n"
              "images run: samples\n"
              "samples 2:7x5 shade 40\n"
              "samples 4:9x6 shade 80\n"
              "text run: config\n"
              "config 0:<p><strong>lr</strong> 0.5 \xc3\xa9</p>\n")
        << load_fast;
  }
}

TEST(CsvInterop, PythonReadsTheNumbersOfMetricsJsonl) {
  const TempDir folder;
  const auto metrics = folder.path() / "metrics.jsonl";
  track::MetricsFile lines(metrics, {});
  track::CsvFile table(folder.path() / "metrics.csv", metrics);
  for (int64_t step = 1; step <= 50; ++step) {
    track::Record record{.step = step,
                         .metrics = {{"train/loss", 1.0 / double(step)}}};
    if (step % 7 == 0) record.metrics.emplace_back("odd, \"name\"", 1e-7 / 3);
    if (step % 9 == 0) record.metrics.emplace_back("bad", NAN);
    lines.record(record);
    table.record(record);
    const track::Record validation{
        .step = step, .metrics = {{"val/loss", std::sqrt(double(step))}}};
    if (step % 10 == 0) {
      lines.record(validation);
      table.record(validation);
    }
  }
  EXPECT_EQ(ask_python("csv_equals_jsonl.py", {folder.path()}),
            "50 rows, 67 numbers are equal\n");
}

TEST(PlotInterop, BothImagesAreReadByOthers) {
  const TempDir folder;
  track::PlotTracker plots(
      {.folder = folder.path(), .title = "a <b> & \xc3\xa9"});
  for (int64_t step = 1; step <= 20; ++step) {
    plots.record({.step = step, .metrics = {{"train/loss", 1 / double(step)}}});
  }
  plots.finish(0);
  // One line for the training, one in the legend.
  EXPECT_EQ(ask_python("plot_files.py", {folder.path()}),
            "svg 1200 800 lines 2\n"
            "title a <b> & \xc3\xa9\n"
            "png PNG RGB 1200 800\n"
            "has the line of the training: True\n");
}

}  // namespace
}  // namespace lockstep
