#include "lockstep/base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <random>

#include "lockstep/error.h"
#include "lockstep/formats/torch_file.h"
#include "support/file_size_limit.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

size_t num_files(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(AtomicFile, AppearsWholeOnCommit) {
  const testing::TempDir folder;
  const fs::path path = folder.write("file", "old");
  {
    base::AtomicFile file(path);
    file.write("new ");
    file.write("content");
    EXPECT_EQ(base::read_file(path), "old");
    EXPECT_EQ(file.size(), 11u);
    file.commit();
  }
  EXPECT_EQ(base::read_file(path), "new content");
  EXPECT_EQ(num_files(folder.path()), 1u);
}

// In a child: the umask belongs to the whole process.
TEST(AtomicFile, HasTheRightsThatTheUmaskAllows) {
  for (const auto& [mask, rights] :
       {std::pair(077, 0600), std::pair(022, 0644), std::pair(002, 0664)}) {
    const testing::TempDir folder;
    const fs::path path = folder.path() / "file";
    const pid_t child = fork();
    if (child == 0) {
      umask(static_cast<mode_t>(mask));
      base::AtomicFile file(path);
      struct stat while_written{};
      for (const auto& entry : fs::directory_iterator(folder.path())) {
        stat(entry.path().c_str(), &while_written);
      }
      file.commit();
      _exit((while_written.st_mode & 0777) == static_cast<mode_t>(rights) ? 0
                                                                          : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << std::oct << mask;
    struct stat written{};
    ASSERT_EQ(stat(path.c_str(), &written), 0);
    EXPECT_EQ(written.st_mode & 0777, static_cast<mode_t>(rights));
  }
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  const testing::TempDir folder;
  const fs::path path = folder.write("file", "old");
  base::AtomicFile(path).write("new");
  EXPECT_EQ(base::read_file(path), "old");
  EXPECT_EQ(num_files(folder.path()), 1u);
}

TEST(AtomicFile, AFailedWriteLeavesTheOldFileAndNoOther) {
  const testing::TempDir folder;
  const fs::path path = folder.write("file", "old");
  std::string message;
  {
    const testing::FileSizeLimit limit(1000);
    formats::Value value;
    value["x"] = testing::float_tensor({1000}, std::vector<float>(1000));
    try {
      formats::write_torch_file(path, value);
    } catch (const IoError& error) {
      message = error.what();
    }
  }
  EXPECT_NE(message.find(path.string() + "': File too large"),
            std::string::npos)
      << message;
  EXPECT_EQ(base::read_file(path), "old");
  EXPECT_EQ(num_files(folder.path()), 1u);
}

TEST(AtomicFile, AMissingFolderIsAnError) {
  EXPECT_THROW(base::AtomicFile("/nowhere/at/all"), IoError);
}

TEST(AtomicFile, LeftoversGoAndFilesBeingWrittenStay) {
  const testing::TempDir folder;
  const fs::path leftover = folder.write("a.pt.partial.Ab3dEf", "half");
  for (const char* name : {"b.pt", "notes.partial.txt", ".partial.abcdef"}) {
    folder.write(name, "mine");
  }
  base::AtomicFile living(folder.path() / "c.pt");
  living.write("x");
  EXPECT_EQ(base::remove_leftovers(folder.path()),
            std::vector<fs::path>{leftover});
  living.commit();
  EXPECT_EQ(num_files(folder.path()), 4u);
  EXPECT_TRUE(base::remove_leftovers(folder.path() / "none").empty());
}

[[noreturn]] void write_for_ever(const fs::path& path) {
  for (int64_t step = 1;; ++step) {
    formats::Value value;
    value["step"] = step;
    value["x"] = testing::float_tensor(
        {50'000}, std::vector<float>(50'000, static_cast<float>(step)));
    formats::write_torch_file(path, value);
  }
}

TEST(AtomicFile, AKilledWriterLeavesAValidFile) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "last.pt";
  std::mt19937 random(7);
  size_t num_leftovers = 0;
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    if (child == 0) write_for_ever(path);
    ASSERT_TRUE(testing::wait_for([&] { return fs::exists(path); }, 20));
    const timespec pause{.tv_sec = 0,
                         .tv_nsec = static_cast<long>(random() % 20'000'000)};
    nanosleep(&pause, nullptr);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const formats::Value value = formats::read_torch_file(path);
    const formats::TensorRecord& tensor = value.at("x").as_tensor();
    std::vector<float> elements(50'000);
    std::memcpy(elements.data(), tensor.storage->bytes().data(), 200'000);
    const auto step = static_cast<float>(value.at("step").as_int());
    ASSERT_EQ(std::ranges::count(elements, step), 50'000);
    num_leftovers += base::remove_leftovers(folder.path()).size();
    ASSERT_EQ(num_files(folder.path()), 1u);
  }
  EXPECT_GT(num_leftovers, 0u) << "no kill hit a write";
}

}  // namespace
}  // namespace lockstep
