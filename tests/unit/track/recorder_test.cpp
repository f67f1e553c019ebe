#include "lockstep/track/recorder.h"

#include <gtest/gtest.h>

#include <future>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/track/output_files.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

// Everything it received, and how it shall behave.
struct Diary {
  std::vector<std::string> told = {};
  int64_t failing_from = 1000;  // Steps.
  int64_t failing_to = 1000;
  std::shared_future<void> held_until = {};
};

class DiaryTracker : public track::Tracker {
 public:
  explicit DiaryTracker(Diary& diary) : diary_(diary) {}
  std::string name() const override { return "diary"; }
  void record(const track::Record& record) override {
    if (diary_.held_until.valid()) diary_.held_until.wait();
    if (record.step >= diary_.failing_from && record.step < diary_.failing_to) {
      throw IoError("cannot write 'diary': No space left");
    }
    EXPECT_GT(record.unix_time, 1.7e9);
    diary_.told.push_back("step " + std::to_string(record.step));
  }
  void console(const track::ConsoleText& text) override {
    diary_.told.push_back((text.is_error ? "err " : "out ") + text.text);
  }
  void finish(int exit_code) override {
    diary_.told.push_back("exit " + std::to_string(exit_code));
  }

 private:
  Diary& diary_;
};

std::vector<std::unique_ptr<track::Tracker>> trackers_of(
    std::vector<Diary*> diaries) {
  std::vector<std::unique_ptr<track::Tracker>> trackers;
  for (Diary* diary : diaries) {
    trackers.push_back(std::make_unique<DiaryTracker>(*diary));
  }
  return trackers;
}

TEST(Recorder, TellsEveryTrackerEverythingInOrder) {
  Diary one;
  Diary two;
  track::Recorder recorder({}, trackers_of({&one, &two}));
  recorder.record({.step = 1});
  recorder.console({.is_error = true, .text = "hm\n"});
  recorder.record({.step = 2});
  recorder.finish(3);
  recorder.record({.step = 9});
  recorder.finish(4);
  const std::vector<std::string> expected = {"step 1", "err hm\n", "step 2",
                                             "exit 3"};
  EXPECT_EQ(one.told, expected);
  EXPECT_EQ(two.told, expected);
}

TEST(Recorder, WithoutFinishWhatWaitsIsStillWritten) {
  Diary diary;
  {
    track::Recorder recorder({}, trackers_of({&diary}));
    recorder.record({.step = 1});
  }
  EXPECT_EQ(diary.told, std::vector<std::string>{"step 1"});
}

TEST(Recorder, WaitsForAllThatWasRecordedBefore) {
  std::promise<void> release;
  Diary diary{.held_until = release.get_future().share()};
  track::Recorder recorder({}, trackers_of({&diary}));
  recorder.wait();  // For nothing.
  recorder.record({.step = 1});
  recorder.console({.text = "two\n"});
  auto waiting = std::async(std::launch::async, [&] { recorder.wait(); });
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
  EXPECT_FALSE(recorder.wait_for(std::chrono::milliseconds(20)));
  release.set_value();
  waiting.get();
  EXPECT_TRUE(recorder.wait_for(std::chrono::milliseconds(0)));
  EXPECT_EQ(diary.told, (std::vector<std::string>{"step 1", "out two\n"}));
  recorder.finish(0);
}

TEST(Recorder, SaysOnceThatATrackerFailsAndWhatItLost) {
  Diary failing{.failing_from = 2, .failing_to = 4};
  Diary other;
  std::vector<std::string> problems;
  track::Recorder recorder(
      {.on_problem =
           [&](const std::string& text) { problems.push_back(text); }},
      trackers_of({&failing, &other}));
  for (int64_t step = 1; step <= 5; ++step) recorder.record({.step = step});
  recorder.finish(0);
  EXPECT_EQ(failing.told,
            (std::vector<std::string>{"step 1", "step 4", "step 5", "exit 0"}));
  EXPECT_EQ(other.told.size(), 6u);
  EXPECT_EQ(problems,
            (std::vector<std::string>{
                "diary: cannot write 'diary': No space left; training goes on",
                "diary: 2 records could not be written"}));
}

TEST(Recorder, ATrackerThatGoesOnFailingIsSaidAgain) {
  Diary failing{.failing_from = 1, .failing_to = 100};
  int num_problems = 0;
  track::Recorder recorder(
      {.report_interval = std::chrono::milliseconds(-1),
       .on_problem = [&](const std::string&) { ++num_problems; }},
      trackers_of({&failing}));
  for (int64_t step = 1; step <= 5; ++step) recorder.record({.step = step});
  recorder.finish(0);
  EXPECT_EQ(num_problems, 6);  // Five, and what was lost.
}

TEST(Recorder, ASlowDiskNeverHoldsUpTheCallerAndDropsAreSaid) {
  std::promise<void> release;
  Diary diary{.held_until = release.get_future().share()};
  std::vector<std::string> problems;
  track::Recorder recorder(
      {.max_waiting_bytes = 10'000,
       .on_problem =
           [&](const std::string& text) { problems.push_back(text); }},
      trackers_of({&diary}));
  // All of this returns although nothing can be written.
  for (int64_t step = 1; step <= 1000; ++step) recorder.record({.step = step});
  release.set_value();
  recorder.finish(0);
  EXPECT_GT(diary.told.size(), 10u);
  EXPECT_LT(diary.told.size(), 1000u);
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].find("records were dropped, because the disk is too "
                             "slow"),
            std::string::npos)
      << problems[0];
}

TEST(Recorder, TicksWhileNothingIsRecorded) {
  std::promise<void> ticked;
  class Ticker : public track::Tracker {
   public:
    explicit Ticker(std::promise<void>& done) : done_(done) {}
    std::string name() const override { return "ticker"; }
    void record(const track::Record&) override {}
    void tick(double unix_time) override {
      EXPECT_GT(unix_time, 1.7e9);
      if (++count_ == 3) done_.set_value();
    }

   private:
    std::promise<void>& done_;
    int count_ = 0;
  };
  std::vector<std::unique_ptr<track::Tracker>> trackers;
  trackers.push_back(std::make_unique<Ticker>(ticked));
  track::Recorder recorder({.tick = std::chrono::milliseconds(1)},
                           std::move(trackers));
  EXPECT_EQ(ticked.get_future().wait_for(std::chrono::seconds(20)),
            std::future_status::ready);
}

TEST(Recorder, AProblemMayBeSaidOnTheConsoleThatIsRecorded) {
  Diary failing{.failing_from = 1, .failing_to = 2};
  Diary other;
  track::Recorder* self = nullptr;
  track::Recorder recorder(
      {.on_problem =
           [&](const std::string& text) {
             self->console({.is_error = true, .text = text});
           }},
      trackers_of({&failing, &other}));
  self = &recorder;
  recorder.record({.step = 1});
  recorder.finish(0);
}

TEST(OutputFiles, AppearBelowTheRunFolder) {
  const testing::TempDir folder;
  std::vector<std::filesystem::path> written;
  track::OutputFiles files(
      {.folder = folder.path(),
       .on_written = [&](const std::filesystem::path& path) {
         written.push_back(path);
       }});
  files.record({.files = {{.name = "images/step3.png", .bytes = "abc"},
                          {.name = "note.txt", .bytes = ""}}});
  EXPECT_EQ(base::read_file(folder.path() / "images/step3.png"), "abc");
  EXPECT_EQ(base::read_file(folder.path() / "note.txt"), "");
  EXPECT_EQ(written.size(), 2u);
}

TEST(OutputFiles, ThatCannotBeWrittenAreAnError) {
  const testing::TempDir folder;
  folder.write("images", "a file in the way");
  track::OutputFiles files({.folder = folder.path()});
  EXPECT_THROW(
      files.record({.files = {{.name = "images/a.png", .bytes = "x"}}}),
      IoError);
}

}  // namespace
}  // namespace lockstep
