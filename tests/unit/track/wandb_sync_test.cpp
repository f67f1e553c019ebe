#include "lockstep/track/wandb_sync.h"

#include <gtest/gtest.h>

#include "lockstep/base/files.h"
#include "support/messages.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::expect_in;
using testing::expect_not_in;
using testing::TempDir;

constexpr double kPatience = 60;  // Seconds.

// The script stands for wandb's client; $log is the run's file.
class WandbSyncTest : public ::testing::Test {
 protected:
  WandbSyncTest() { fs::create_directories(run_.folder); }

  track::WandbSyncConfig config(const std::string& script) {
    return {.client = folder_.write_script("wandb",
                                           "#!/bin/sh\n"
                                           "if [ \"$1\" = --version ]; then " +
                                               version_ +
                                               "; exit; fi\n"
                                               "for log; do :; done\n"
                                               "echo start >> " +
                                               count_file().string() + "\n" +
                                               script + "\n"),
            .run = run_,
            .environment = {{"PATH", "/usr/bin:/bin"},
                            {"WANDB_API_KEY", "topsecret"},
                            {"WANDB_RESUME", "allow"},
                            {"WANDB_SILENT", "true"}},
            .connect_timeout = 1h,
            .on_info = [this](const std::string& text) { infos_ += text; },
            .on_warning =
                [this](const std::string& text) { warnings_.push_back(text); }};
  }

  fs::path count_file() const { return folder_.path() / "starts"; }
  int num_starts() const {
    const auto text = base::try_read_file(count_file()).value_or("");
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }

  // As a recorder calls it, but faster.
  template <typename Condition>
  bool tick_until(track::WandbSync& sync, Condition condition) {
    return testing::wait_for(
        [&] {
          sync.tick(0);
          return condition();
        },
        kPatience);
  }

  TempDir folder_;
  const track::WandbRun run_{.id = "abc",
                             .folder = folder_.path() / "offline-run-1-abc"};
  std::string version_ =
      std::string("echo wandb, version ") + track::kTestedWandbClient;
  std::string infos_;
  std::vector<std::string> warnings_;
};

TEST_F(WandbSyncTest, FindsTheClientOnThePath) {
  const std::string client = folder_.write_script("wandb", "#!/bin/sh\n");
  EXPECT_EQ(track::find_wandb_client(
                {{"PATH", "/nothing:" + folder_.path().string()}}),
            client);
  EXPECT_FALSE(track::find_wandb_client({{"PATH", "/nothing"}}));
  expect_in(track::missing_wandb_client_text(run_),
            std::string("pip install wandb==") + track::kTestedWandbClient);
  expect_in(track::missing_wandb_client_text(run_),
            "wandb sync " + run_.folder.string());
}

TEST_F(WandbSyncTest, GivesTheKeyToTheClientAndToNobodyElse) {
  track::WandbSync sync(
      config("echo \"$@\"; env > \"$log.env\"; touch \"$log.synced\""));
  sync.finish(0);
  const std::string environment = base::read_file(run_.log().string() + ".env");
  expect_in(environment, "WANDB_API_KEY=topsecret\n");
  expect_not_in(environment, "WANDB_RESUME");
  expect_not_in(environment, "WANDB_SILENT");
  const std::string output = base::read_file(run_.folder / "sync.log");
  expect_in(output, "beta sync --live");
  expect_in(output, run_.log().string());
  expect_not_in(output, "topsecret");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(WandbSyncTest, NamesTheAddressOfTheRun) {
  track::WandbSync sync(config(
      "echo 'wandb: [p/abc] View run at https://host/runs/abc'; sleep 1000"));
  EXPECT_TRUE(tick_until(sync, [this] { return !infos_.empty(); }));
  EXPECT_EQ(infos_, "wandb: this run is at https://host/runs/abc");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(WandbSyncTest, WarnsOnceOfAnUntestedVersion) {
  version_ = "echo wandb, version 9.9.9";
  auto settings = config("exit 0");
  settings.restart_delay = 0ms;
  track::WandbSync sync(settings);
  EXPECT_TRUE(tick_until(sync, [this] { return num_starts() >= 3; }));
  ASSERT_EQ(warnings_.size(), 2U);
  expect_in(warnings_[0], "version 9.9.9, the tested one is");
  expect_in(warnings_[1], "ended with exit code 0");
}

TEST_F(WandbSyncTest, StartsAClientAgainThatEndedAndWarnsOnce) {
  auto settings = config("echo first; echo 'no key' >&2; exit 4");
  settings.restart_delay = 0ms;
  track::WandbSync sync(settings);
  EXPECT_TRUE(tick_until(sync, [this] { return num_starts() >= 3; }));
  ASSERT_EQ(warnings_.size(), 1U);
  expect_in(warnings_[0],
            "the client ended with exit code 4 (client: no key); training");
}

TEST_F(WandbSyncTest, LeavesTimeBetweenTwoStarts) {
  auto settings = config("exit 4");
  settings.restart_delay = 1h;
  track::WandbSync sync(settings);
  EXPECT_TRUE(tick_until(sync, [this] { return !warnings_.empty(); }));
  for (int i = 0; i < 10; ++i) sync.tick(0);
  EXPECT_EQ(num_starts(), 1);
}

TEST_F(WandbSyncTest, AClientThatCannotBeStartedIsAWarning) {
  auto settings = config("exit 0");
  fs::remove_all(run_.folder);  // So that its output cannot be opened.
  track::WandbSync sync(settings);
  sync.tick(0);
  sync.finish(0);
  ASSERT_EQ(warnings_.size(), 1U);
  expect_in(warnings_[0], "could not be started");
}

TEST_F(WandbSyncTest, WarnsOnceWhenThereIsNoConnection) {
  auto settings = config("sleep 1000");
  settings.connect_timeout = 0ms;
  settings.exit_timeout = 0ms;
  track::WandbSync sync(settings);
  EXPECT_TRUE(tick_until(sync, [this] { return !warnings_.empty(); }));
  for (int i = 0; i < 10; ++i) sync.tick(0);
  sync.finish(0);
  ASSERT_EQ(warnings_.size(), 1U);
  expect_in(warnings_[0], "no connection to the server for 0 s");
  expect_in(infos_, "to send it: wandb sync " + run_.folder.string());
}

TEST_F(WandbSyncTest, ARunThatEndsBeforeTheFirstTickIsSent) {
  track::WandbSync sync(config("touch \"$log.synced\""));
  sync.finish(0);
  EXPECT_EQ(num_starts(), 1);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(WandbSyncTest, EndsAClientThatHangs) {
  auto settings =
      config("trap '' TERM INT; echo $$ > \"$log.pid\"; sleep 1000");
  settings.exit_timeout = 20ms;
  track::WandbSync sync(settings);
  const fs::path pid_file = run_.log().string() + ".pid";
  EXPECT_TRUE(tick_until(sync, [&] { return fs::exists(pid_file); }));
  sync.finish(0);
  ASSERT_EQ(warnings_.size(), 1U);
  expect_in(warnings_[0], "not everything was sent within 0.02 s");
}

// The launcher and the user wait for the error.
TEST_F(WandbSyncTest, WaitsLessAfterAFailure) {
  auto settings = config("sleep 1000");
  settings.exit_timeout = 1h;
  settings.failed_timeout = 20ms;
  track::WandbSync sync(settings);
  sync.finish(1);
  ASSERT_EQ(warnings_.size(), 1U);
  expect_in(warnings_[0], "within 0.02 s");
}

TEST_F(WandbSyncTest, KeepsItsOutputSmall) {
  auto settings = config("yes some words | head -c 3000000; sleep 1000");
  track::WandbSync sync(settings);
  const fs::path output = run_.folder / "sync.log";
  uintmax_t largest = 0;
  EXPECT_TRUE(tick_until(sync, [&] {
    const auto size = fs::exists(output) ? fs::file_size(output) : 0;
    const bool has_shrunk = size < largest;
    largest = std::max(largest, size);
    return has_shrunk;
  }));
}

}  // namespace
}  // namespace lockstep
