// Runs that C++ recorded are read by wandb's own messages
// (python/wandb_records.py), shown by its own viewer (`wandb leet`) and sent by
// its own client to a server of this test (python/wandb_sync.py).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/track/wandb_tracker.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::TempDir;

constexpr double kStart = 1.7e9;
// SHA-256 of png() and of the page that shows "a < b".
constexpr const char* kPngDigest =
    "49730a4fa26341a2bdc5f26821d63b597a94260f22da3c5b57f34a77c62cd0db";
constexpr const char* kPageDigest =
    "b185ceb8d2228bc4e5bd0e90f4c580b1fe83431165faaf0c8ef65edb394f345a";

// As much of a PNG file as tells its size: 6 wide, 4 high.
std::string png() {
  return {
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x06\0\0\0\x04\x08\x02\0\0\0"
      "\"f\xd9\x14",
      33};
}

track::WandbConfig config_in(const TempDir& folder) {
  track::WandbConfig config;
  config.project = "digits";
  config.name = "first try";
  config.run_id = "abcd1234";
  config.group = "sweep";
  config.job_type = "train";
  config.notes = "some notes";
  config.tags = {"a", "b c"};
  config.folder = folder.path();
  config.config_json =
      R"({"optimizer":{"lr":0.001,"betas":[0.9,0.95]},"seed":7,"amp":true})";
  config.program = "lockstep-worker";
  config.arguments = {"train", "--token", "K", "--seed=7"};
  config.state_file = folder.path() / "state.json";
  config.start_time = kStart + 0.25;
  return config;
}

void record_steps(track::Tracker& tracker) {
  tracker.console({.unix_time = kStart + 1, .text = "hello\n"});
  tracker.tick(kStart + 2);
  tracker.record({.step = 1,
                  .unix_time = kStart + 10.5,
                  .metrics = {{"train/loss", 0.5}, {"train/odd", NAN}}});
  tracker.record(
      {.step = 1, .unix_time = kStart + 11.25, .metrics = {{"val/loss", 2}}});
  tracker.record({.step = 3,
                  .unix_time = kStart + 20.25,
                  .metrics = {{"train/loss", 0.1}, {"train/odd", INFINITY}},
                  .images = {{"samples/a", png()}},
                  .texts = {{"notes", "a < b"}}});
}

std::string run_python(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {TORCH_PYTHON};
  command.insert(command.end(), arguments.begin(), arguments.end());
  testing::ProcessOptions options;
  options.environment = {
      {"EXPECTED_ROOT", fs::current_path()},
      {"EXPECTED_EXECUTABLE", fs::read_symlink("/proc/self/exe")}};
  const auto result = testing::run(command, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

std::vector<Json> read_by_wandb(const track::WandbTracker& tracker) {
  const auto log = tracker.folder() / ("run-" + tracker.run_id() + ".wandb");
  std::vector<Json> records;
  for (const auto& line : base::split(
           run_python({PYTHON_SCRIPTS "/wandb_records.py", log}), '\n')) {
    if (!line.empty()) records.push_back(Json::parse(line));
  }
  return records;
}

Json sent_by_wandb(const track::WandbTracker& tracker) {
  const TempDir scratch;
  const auto out = run_python(
      {PYTHON_SCRIPTS "/wandb_sync.py", tracker.folder(), scratch.path()});
  // Python writes what JSON lacks, for example NaN.
  const auto text = base::replace_all(base::replace_all(out, "NaN", "\"NaN\""),
                                      "Infinity", "\"Infinity\"");
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// What wandb's own reader prints of a run.
std::string inspected_by_wandb(const track::WandbTracker& tracker,
                               const std::string& how) {
  const TempDir home;
  testing::ProcessOptions options;
  options.environment = {{"HOME", home.path()},
                         {"WANDB_DIR", home.path()},
                         {"WANDB_CONFIG_DIR", home.path()},
                         {"WANDB_CACHE_DIR", home.path()},
                         {"WANDB_ERROR_REPORTING", "false"}};
  const auto program = fs::path(TORCH_PYTHON).parent_path() / "wandb";
  const auto result = testing::run(
      {program, "leet", "inspect", how, "--json", tracker.folder()}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

Json item(const std::vector<std::string>& key, const std::string& json) {
  return {{"nested_key", key}, {"value_json", json}};
}

Json items_of_step_1() {
  return {item({"train/loss"}, "0.5"), item({"train/odd"}, "NaN"),
          item({"val/loss"}, "2"),     item({"_step"}, "1"),
          item({"_runtime"}, "11"),    item({"_timestamp"}, "1700000011.25")};
}

std::string media_path(const std::string& beginning, const std::string& digest,
                       const std::string& ending) {
  return "media/" + beginning + digest.substr(0, 20) + ending;
}

Json items_of_step_3() {
  const auto image = media_path("images/samples/a_3_", kPngDigest, ".png");
  const auto page = media_path("html/notes_3_", kPageDigest, ".html");
  const auto quoted = [](const std::string& text) { return Json(text).dump(); };
  return {item({"train/loss"}, "0.1"),
          item({"train/odd"}, "Infinity"),
          item({"samples/a", "_type"}, "\"image-file\""),
          item({"samples/a", "path"}, quoted(image)),
          item({"samples/a", "sha256"}, quoted(kPngDigest)),
          item({"samples/a", "size"}, "33"),
          item({"samples/a", "format"}, "\"png\""),
          item({"samples/a", "width"}, "6"),
          item({"samples/a", "height"}, "4"),
          item({"notes", "_type"}, "\"html-file\""),
          item({"notes", "path"}, quoted(page)),
          item({"notes", "sha256"}, quoted(kPageDigest)),
          item({"notes", "size"}, "87"),
          item({"_step"}, "3"),
          item({"_runtime"}, "20"),
          item({"_timestamp"}, "1700000020.25")};
}

std::vector<Json> first_records() {
  return {
      {{"header",
        {{"version_info",
          {{"producer", "lockstep"}, {"min_consumer", "0.70.0"}}}}}},
      {{"run",
        {{"run_id", "abcd1234"},
         {"project", "digits"},
         {"config",
          {{"update",
            {{{"key", "optimizer"},
              {"value_json", R"({"lr":0.001,"betas":[0.9,0.95]})"}},
             {{"key", "seed"}, {"value_json", "7"}},
             {{"key", "amp"}, {"value_json", "true"}}}}}},
         {"run_group", "sweep"},
         {"job_type", "train"},
         {"display_name", "first try"},
         {"notes", "some notes"},
         {"tags", {"a", "b c"}},
         {"start_time", "2023-11-14T22:13:20.250Z"}}}},
      {{"environment",
        {{"program", "lockstep-worker"},
         {"args", {"train", "--token", "***", "--seed=7"}},
         {"started_at", "2023-11-14T22:13:20.250Z"},
         {"writer_id", "abcd1234"}}}},
      {{"output_raw",
        {{"output_type", "STDOUT"},
         {"timestamp", "2023-11-14T22:13:21Z"},
         {"line", "hello\n"}}}},
      {{"stats", {{"timestamp", "2023-11-14T22:13:22Z"}}}},
      {{"summary", {{"update", items_of_step_1()}}}},
      {{"history", {{"item", items_of_step_1()}, {"step", {{"num", "1"}}}}}}};
}

void expect_records(const std::vector<Json>& records,
                    const std::vector<Json>& expected) {
  ASSERT_EQ(records.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    Json numbered = expected[i];
    numbered["num"] = std::to_string(i + 1);
    EXPECT_EQ(records[i], numbered);
  }
}

Json summary_of_time(const std::string& whole, const std::string& exact) {
  return {
      {"summary",
       {{"update",
         {item({"_wandb", "runtime"}, whole), item({"_runtime"}, exact)}}}}};
}

TEST(WandbInterop, EveryFieldIsReadByWandbsOwnMessages) {
  const TempDir folder;
  track::WandbTracker tracker(config_in(folder), {});
  record_steps(tracker);
  tracker.finish(3);
  auto expected = first_records();
  const Json files = {
      {{"path", media_path("images/samples/a_3_", kPngDigest, ".png")},
       {"type", "MEDIA"}},
      {{"path", media_path("html/notes_3_", kPageDigest, ".html")},
       {"type", "MEDIA"}}};
  expected.push_back({{"files", {{"files", files}}}});
  expected.push_back({{"summary", {{"update", items_of_step_3()}}}});
  expected.push_back(
      {{"history", {{"item", items_of_step_3()}, {"step", {{"num", "3"}}}}}});
  expected.push_back(summary_of_time("20", "20"));
  expected.push_back({{"exit", {{"exit_code", 3}, {"runtime", 20}}}});
  expected.push_back({{"final", Json::object()}});
  expected.push_back({{"footer", Json::object()}});
  expect_records(read_by_wandb(tracker), expected);
}

TEST(WandbInterop, ARunThatWentOnIsReadAsOne) {
  const TempDir folder;
  track::WandbConfig config = config_in(folder);
  {
    track::WandbTracker tracker(config, {});
    record_steps(tracker);
    tracker.finish(1);
  }
  config.start_time = kStart + 5000;
  track::WandbTracker tracker(
      config, track::KeptRecords{.last_step = 1, .redone = "val/"});
  tracker.record(
      {.step = 1, .unix_time = kStart + 5000.25, .metrics = {{"val/loss", 2}}});
  tracker.finish(0);
  auto expected = first_records();
  // The step was open again, and its time is that of its last value.
  for (size_t i : {5, 6}) {
    auto& items = i == 5 ? expected[i]["summary"]["update"]
                         : expected[i]["history"]["item"];
    items[4] = item({"_runtime"}, "11.25");
    items[5] = item({"_timestamp"}, "1700005000.25");
  }
  expected.push_back(summary_of_time("11", "11.25"));
  expected.push_back({{"exit", {{"runtime", 11}}}});
  expected.push_back({{"final", Json::object()}});
  expected.push_back({{"footer", Json::object()}});
  expect_records(read_by_wandb(tracker), expected);
}

TEST(WandbInterop, RecordsOverSeveralBlocksAreRead) {
  const TempDir folder;
  track::WandbTracker tracker(config_in(folder), {});
  constexpr int kTexts = 60;
  for (int i = 0; i < kTexts; ++i) {
    tracker.console({.unix_time = kStart, .text = std::string(i * 997, 'x')});
  }
  const auto records = read_by_wandb(tracker);
  const auto lines = base::split(inspected_by_wandb(tracker, "--json"), '\n');
  ASSERT_EQ(records.size(), 3 + kTexts);
  ASSERT_GE(lines.size(), 3 + kTexts);
  for (int i = 1; i < kTexts; ++i) {
    const std::string text(i * 997, 'x');
    EXPECT_EQ(records[3 + i]["output_raw"]["line"], text);
    EXPECT_EQ(Json::parse(lines[3 + i])["output_raw"]["line"], text);
  }
}

TEST(WandbInterop, TheViewerShowsTheRun) {
  const TempDir folder;
  track::WandbTracker tracker(config_in(folder), {});
  record_steps(tracker);
  tracker.finish(3);
  const Json shown = Json::parse(inspected_by_wandb(tracker, "--summary"));
  EXPECT_EQ(shown["run_id"], "abcd1234");
  EXPECT_EQ(shown["project"], "digits");
  EXPECT_EQ(shown["name"], "first try");
  EXPECT_EQ(shown["notes"], "some notes");
  EXPECT_EQ(shown["tags"], (Json{"a", "b c"}));
  EXPECT_EQ(shown["config"]["optimizer"],
            (Json{{"lr", 0.001}, {"betas", {0.9, 0.95}}}));
  EXPECT_EQ(shown["console"][0]["line"], "hello");
  EXPECT_EQ(shown["state"], "failed");
  EXPECT_EQ(shown["exit_code"], 3);
  EXPECT_EQ(shown["step"], 3);
  EXPECT_EQ(shown["summary"]["train/loss"], 0.1);
  EXPECT_EQ(shown["summary"]["train/odd"], "Infinity");
  EXPECT_EQ(shown["summary"]["samples/a"]["width"], 6);
}

TEST(WandbInterop, TheViewerShowsARunThatGoesOnAfterATornRecord) {
  const TempDir folder;
  fs::path log;
  {
    track::WandbTracker tracker(config_in(folder), {});
    record_steps(tracker);
    log = tracker.folder() / ("run-" + tracker.run_id() + ".wandb");
  }
  fs::resize_file(log, fs::file_size(log) - 3);
  track::WandbTracker tracker(config_in(folder),
                              track::KeptRecords{.last_step = 3});
  tracker.record({.step = 4,
                  .unix_time = kStart + 40,
                  .metrics = {{"train/loss", 0.0625}}});
  tracker.record({.step = 5, .unix_time = kStart + 50});
  const Json shown = Json::parse(inspected_by_wandb(tracker, "--summary"));
  EXPECT_EQ(shown["state"], "running");
  EXPECT_EQ(shown["step"], 4);
  EXPECT_EQ(shown["summary"]["train/loss"], 0.0625);
  EXPECT_EQ(shown["summary"]["samples/a"]["width"], 6);
}

TEST(WandbInterop, SyncSendsTheWholeRun) {
  const TempDir folder;
  track::WandbTracker tracker(config_in(folder), {});
  record_steps(tracker);
  tracker.finish(0);
  const Json sent = sent_by_wandb(tracker);
  ASSERT_TRUE(sent.is_object());
  EXPECT_EQ(sent["run_id"], "abcd1234");
  EXPECT_EQ(sent["project"], "digits");
  EXPECT_EQ(sent["display_name"], "first try");
  EXPECT_EQ(sent["notes"], "some notes");
  EXPECT_EQ(sent["tags"], (Json{"a", "b c"}));
  EXPECT_EQ(sent["config"]["optimizer"]["value"],
            (Json{{"lr", 0.001}, {"betas", {0.9, 0.95}}}));
  EXPECT_EQ(sent["config"]["seed"]["value"], 7);
  EXPECT_EQ(sent["exit_code"], 0);
  EXPECT_EQ(sent["console"], (Json{"hello"}));
  ASSERT_EQ(sent["history"].size(), 2);
  EXPECT_EQ(sent["history"][0], (Json{{"train/loss", 0.5},
                                      {"train/odd", "NaN"},
                                      {"val/loss", 2},
                                      {"_step", 1},
                                      {"_runtime", 11},
                                      {"_timestamp", 1700000011.25}}));
  const Json& last = sent["history"][1];
  EXPECT_EQ(last["train/odd"], "Infinity");
  EXPECT_EQ(last["samples/a"]["width"], 6);
  EXPECT_EQ(last["notes"]["_type"], "html-file");
  EXPECT_EQ(sent["summary"]["train/loss"], 0.1);
  EXPECT_EQ(sent["summary"]["val/loss"], 2);
  EXPECT_EQ(sent["summary"]["_wandb"]["runtime"], 20);
  ASSERT_EQ(sent["events"].size(), 1);
  EXPECT_GT(sent["events"][0]["system.proc.memory.rssMB"], 1);
  const Json& files = sent["files"];
  EXPECT_EQ(files[last["samples/a"]["path"].get<std::string>()], kPngDigest);
  EXPECT_EQ(files[last["notes"]["path"].get<std::string>()], kPageDigest);
  for (const char* name : {"config.yaml", "wandb-summary.json",
                           "wandb-metadata.json", "output.log"}) {
    EXPECT_TRUE(files.contains(name)) << name;
  }
  const Json metadata = Json::parse(
      base::read_file(tracker.folder() / "files" / "wandb-metadata.json"));
  EXPECT_EQ(metadata["program"], "lockstep-worker");
  EXPECT_EQ(metadata["args"], (Json{"train", "--token", "***", "--seed=7"}));
}

TEST(WandbInterop, SyncSendsAResumedRunWhole) {
  const TempDir folder;
  const track::WandbConfig config = config_in(folder);
  {
    track::WandbTracker tracker(config, {});
    record_steps(tracker);
    tracker.finish(1);
    EXPECT_EQ(sent_by_wandb(tracker)["exit_code"], 1);
  }
  track::WandbTracker tracker(config, track::KeptRecords{.last_step = 1});
  tracker.record(
      {.step = 2, .unix_time = kStart + 40, .metrics = {{"train/loss", 0.25}}});
  tracker.finish(0);
  const Json sent = sent_by_wandb(tracker);
  EXPECT_EQ(sent["run_id"], "abcd1234");
  EXPECT_EQ(sent["exit_code"], 0);
  ASSERT_EQ(sent["history"].size(), 2);
  EXPECT_EQ(sent["history"][0]["_step"], 1);
  EXPECT_EQ(sent["history"][0]["val/loss"], 2);
  EXPECT_EQ(sent["history"][1]["_step"], 2);
  EXPECT_EQ(sent["history"][1]["train/loss"], 0.25);
  EXPECT_EQ(sent["summary"]["train/loss"], 0.25);
}

TEST(WandbInterop, SyncSendsAKilledRunAsFailed) {
  const TempDir folder;
  track::WandbTracker tracker(config_in(folder), {});
  record_steps(tracker);
  const Json sent = sent_by_wandb(tracker);
  EXPECT_EQ(sent["exit_code"], 1);
  EXPECT_EQ(sent["history"].size(), 1);
}

}  // namespace
}  // namespace lockstep
