#include "lockstep/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "lockstep/base/atomic_file.h"
#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

TEST(Files, WriteReplacesTheWholeFileAndLeavesNoOther) {
  const TempDir folder;
  const auto path = folder.path() / "file";
  base::write_file_atomically(path, "a long first text");
  base::write_file_atomically(path, std::string_view("b\0c", 3));
  EXPECT_EQ(base::read_file(path), std::string("b\0c", 3));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(Files, ErrorsNameThePath) {
  const TempDir folder;
  const auto path = folder.path() / "none" / "file";
  EXPECT_FALSE(base::try_read_file(path));
  try {
    base::read_file(path);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
  }
  EXPECT_THROW(base::write_file_atomically(path, ""), IoError);
}

TEST(Files, UniqueFoldersDiffer) {
  const TempDir folder;
  const auto first = base::make_unique_folder(folder.path() / "deep", "run_");
  const auto second = base::make_unique_folder(folder.path() / "deep", "run_");
  EXPECT_NE(first, second);
  EXPECT_TRUE(fs::is_directory(first));
}

TEST(FileDescriptor, ClosesOnceAndMoves) {
  int number = -1;
  {
    base::FileDescriptor first(open("/dev/null", O_RDONLY));
    number = first.get();
    base::FileDescriptor second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_EQ(second.get(), number);
  }
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
}

TEST(WriteAll, ReportsAClosedReader) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_TRUE(base::write_all(ends[1], "text"));
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN);
  EXPECT_FALSE(base::write_all(ends[1], "text"));
  signal(SIGPIPE, SIG_DFL);
  close(ends[1]);
}

TEST(TryReadFile, AVanishingProcessGivesNoValueAndNoException) {
  // Its files can be opened before it ends and read after it: ESRCH.
  for (int turn = 0; turn < 200; ++turn) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(0);
    const auto folder = std::filesystem::path("/proc") / std::to_string(child);
    for (const char* name : {"environ", "stat", "cmdline"}) {
      EXPECT_NO_THROW(base::try_read_file(folder / name));
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(base::try_read_file(folder / "stat"), std::nullopt);
  }
  EXPECT_EQ(base::try_read_file("/proc"), std::nullopt);  // EISDIR when read
}

}  // namespace
}  // namespace lockstep
