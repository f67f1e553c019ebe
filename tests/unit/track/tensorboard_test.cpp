// What TensorBoard itself reads: tests/interop/tensorboard_interop_test.cpp.
#include "lockstep/track/tensorboard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/track/tfrecord.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::FileSizeLimit;
using testing::TempDir;

constexpr size_t kFirstEvents = 2;  // Version and start.

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The data of every record; fails on a byte that belongs to none.
std::vector<std::string> events_in(const std::filesystem::path& path) {
  std::string rest = base::read_file(path);
  std::vector<std::string> events;
  while (!rest.empty()) {
    const size_t size = static_cast<unsigned char>(rest[0]) |
                        size_t{static_cast<unsigned char>(rest[1])} << 8;
    const std::string data = rest.substr(12, size);
    EXPECT_EQ(rest.substr(0, size + 16), track::tfrecord(data));
    if (rest.size() < size + 16) break;
    events.push_back(data);
    rest.erase(0, size + 16);
  }
  return events;
}

TEST(TensorBoard, TheNameTellsTimeHostAndProcess) {
  const TempDir folder;
  const track::TensorBoardTracker tracker(
      {.folder = folder.path() / "new/run"});
  const auto names = names_in(folder.path() / "new/run");
  ASSERT_EQ(names.size(), 1U);
  const std::string begin = "events.out.tfevents.";
  EXPECT_TRUE(names[0].starts_with(begin));
  EXPECT_EQ(names[0].find('.', begin.size()), begin.size() + 10);
  EXPECT_TRUE(names[0].ends_with("." + std::to_string(getpid()) + ".0"));
}

TEST(TensorBoard, ALaterFileSortsBehindEarlierOnes) {
  const TempDir folder;
  folder.write("events.out.tfevents.9000000000.host.1.0", "");
  const track::TensorBoardTracker first({.folder = folder.path()});
  const track::TensorBoardTracker second({.folder = folder.path()});
  const auto names = names_in(folder.path());
  ASSERT_EQ(names.size(), 3U);
  EXPECT_TRUE(names[1].starts_with("events.out.tfevents.9000000001."));
  EXPECT_TRUE(names[2].starts_with("events.out.tfevents.9000000002."));
}

TEST(TensorBoard, ARecordIsOneEvent) {
  const TempDir folder;
  track::TensorBoardTracker tracker({.folder = folder.path()});
  tracker.record({.step = 1, .metrics = {{"a", 1}, {"b", 2}}});
  tracker.record({.step = 2});
  tracker.record({.step = 3, .texts = {{.title = "note", .text = "x"}}});
  const auto events = events_in(folder.path() / names_in(folder.path())[0]);
  ASSERT_EQ(events.size(), kFirstEvents + 2);
  EXPECT_NE(events[0].find("brain.Event:2"), std::string::npos);
  EXPECT_NE(events.back().find("note"), std::string::npos);
}

TEST(TensorBoard, AFullDiskLeavesWholeEventsAndLaterOnesFollow) {
  const TempDir folder;
  track::TensorBoardTracker tracker({.folder = folder.path()});
  const auto path = folder.path() / names_in(folder.path())[0];
  tracker.record({.step = 1, .metrics = {{"before", 1}}});
  {
    const FileSizeLimit limit(std::filesystem::file_size(path) + 20);
    EXPECT_THROW(tracker.record({.step = 2, .metrics = {{"lost", 2}}}),
                 IoError);
    EXPECT_EQ(events_in(path).size(), kFirstEvents + 1);
  }
  tracker.record({.step = 3, .metrics = {{"behind", 3}}});
  const auto events = events_in(path);
  ASSERT_EQ(events.size(), kFirstEvents + 2);
  EXPECT_NE(events.back().find("behind"), std::string::npos);
}

TEST(TensorBoard, AImageThatIsNoneIsAnErrorAndWritesNothing) {
  const TempDir folder;
  track::TensorBoardTracker tracker({.folder = folder.path()});
  const auto path = folder.path() / names_in(folder.path())[0];
  EXPECT_THROW(tracker.record({.step = 1,
                               .metrics = {{"a", 1}},
                               .images = {{.title = "p", .png = "JPEG"}}}),
               FormatError);
  EXPECT_EQ(events_in(path).size(), kFirstEvents);
}

TEST(TensorBoard, AFolderThatCannotBeMadeIsAnError) {
  const TempDir folder;
  folder.write("file", "");
  EXPECT_THROW(
      track::TensorBoardTracker({.folder = folder.path() / "file/run"}),
      IoError);
}

}  // namespace
}  // namespace lockstep
