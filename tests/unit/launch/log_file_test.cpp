#include "lockstep/launch/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/file_size_limit.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::FileSizeLimit;
using testing::TempDir;

// A console that the test reads.
struct Console {
  Console() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_NONBLOCK), 0);
    read_end = base::FileDescriptor(ends[0]);
    write_end = base::FileDescriptor(ends[1]);
  }
  std::string text() const {
    std::string buffer(65536, '\0');
    const ssize_t count = read(read_end.get(), buffer.data(), buffer.size());
    buffer.resize(count < 0 ? 0 : static_cast<size_t>(count));
    return buffer;
  }
  base::FileDescriptor read_end;
  base::FileDescriptor write_end;
};

TEST(LogFile, LinesThatAFullDiskTakesAreCountedAndReportedOnce) {
  const TempDir folder;
  const auto path = folder.path() / "log";
  const Console terminal;
  launch::ConsoleStream console(terminal.write_end.get());
  launch::LogLosses losses(console);
  launch::WorkerLogFile log(path, &losses);
  EXPECT_EQ(losses.summary(), "");
  {
    const FileSizeLimit limit(10);
    for (int i = 0; i < 4; ++i) log.write("line 1\n");
  }
  const std::string text = terminal.text();
  EXPECT_EQ(text, "lockstep: cannot write log file '" + path.string() +
                      "': File too large (errno 27); its lines are lost until "
                      "this is fixed; the job goes on\n");
  EXPECT_EQ(losses.summary(), "3 lines are missing in log file '" +
                                  path.string() +
                                  "': File too large (errno 27)");
  log.write("line 2\n");
  EXPECT_EQ(base::read_file(path),
            "line 1\nlin\n[lockstep: 3 lines are missing here]\nline 2\n");
  EXPECT_EQ(terminal.text(), "");
}

TEST(LogFile, LossesOfSeveralFilesAreAddedUp) {
  const TempDir folder;
  const Console terminal;
  launch::ConsoleStream console(terminal.write_end.get());
  launch::LogLosses losses(console);
  launch::WorkerLogFile first(folder.path() / "a", &losses);
  launch::WorkerLogFile second(folder.path() / "b", &losses);
  const FileSizeLimit limit(0);
  first.write("x\n");
  second.write("x\n");
  second.write("x\n");
  EXPECT_EQ(losses.summary(), "3 lines are missing in 2 log files (1 in '" +
                                  (folder.path() / "a").string() +
                                  "'): File too large (errno 27)");
}

TEST(ConsoleStream, LinesThatAFullDiskTakesAreCounted) {
  const base::FileDescriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  launch::ConsoleStream console(full.get());
  console.write("a\nb\n");
  console.flush();
  console.write("c\n");
  console.flush();
  EXPECT_EQ(console.lost_lines(), 3);
  EXPECT_EQ(console.loss_reason(), "No space left on device (errno 28)");
  EXPECT_FALSE(console.is_broken());
  EXPECT_FALSE(console.has_pending());
}

}  // namespace
}  // namespace lockstep
