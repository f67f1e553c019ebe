#include "lockstep/launch/crash_report.h"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/launch/elf_symbols.h"
#include "support/temp_dir.h"

namespace lockstep {

// Neither exported nor inlined: only the symbol table of the program names it.
// A sanitizer's own backtrace() stands before it.
[[gnu::noinline]] std::vector<std::string> own_frames() {
  std::array<void*, 4> frames{};
  const int count = backtrace(frames.data(), frames.size());
  const std::unique_ptr<char*, void (*)(void*)> lines(
      backtrace_symbols(frames.data(), count), std::free);
  return {lines.get(), lines.get() + count};
}

namespace {

using testing::TempDir;

TEST(CrashReport, NamesOfExportedFunctionsAreDemangled) {
  EXPECT_EQ(launch::frame_text("/usr/lib/libx.so.1(_ZN8lockstep5WorldC2Ev+0x1c)"
                               "[0x7f0123456789]"),
            "lockstep::World::World()+0x1c (libx.so.1)");
  EXPECT_EQ(launch::frame_text("/lib/libc.so.6(abort+0xd3)[0x7f01]"),
            "abort+0xd3 (libc.so.6)");
}

TEST(CrashReport, OtherFunctionsAreFoundInTheSymbolTable) {
  const auto frames = own_frames();
  const auto is_own = [](const std::string& frame) {
    const std::string text = launch::frame_text(frame);
    return text.starts_with("lockstep::own_frames") &&
           text.ends_with("(test_launch)");
  };
  EXPECT_TRUE(std::any_of(frames.begin(), frames.end(), is_own))
      << launch::frame_text(frames[0]);
}

TEST(CrashReport, AddressesStayWhereNoNameIsKnown) {
  EXPECT_EQ(launch::frame_text("/no/such/program(+0x1234)[0x55]"),
            "0x1234 (program)");
  EXPECT_EQ(launch::frame_text("[0x55]"), "[0x55]");
}

TEST(CrashReport, ReadsWhatTheHandlerWrote) {
  const TempDir folder;
  folder.write("crash.txt",
               "signal 11 fault 0x10 thread my thread\n"
               "/a/b(_Z1fv+0x2)[0x1]\n/a/b(main+0x3)[0x2]\n");
  const auto report = launch::read_crash_file(folder.path() / "crash.txt");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->cause, "at address 0x10, in thread my thread");
  EXPECT_EQ(report->stack,
            (std::vector<std::string>{"f()+0x2 (b)", "main+0x3 (b)"}));
  folder.write("sent.txt", "signal 6 sent 42 thread t\n");
  EXPECT_EQ(launch::read_crash_file(folder.path() / "sent.txt")->cause,
            "sent by process 42, in thread t");
  folder.write("raised.txt", "signal 6 raised 42 thread t\n");
  EXPECT_EQ(launch::read_crash_file(folder.path() / "raised.txt")->cause,
            "raised by the process itself, in thread t");
}

TEST(CrashReport, OtherFilesAreNone) {
  const TempDir folder;
  EXPECT_FALSE(launch::read_crash_file(folder.path() / "none"));
  folder.write("odd", "\x1b[2J");
  EXPECT_FALSE(launch::read_crash_file(folder.path() / "odd"));
  const auto fifo = folder.path() / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(launch::read_crash_file(fifo))
      << "and nobody waits for a writer";
}

TEST(CrashReport, ControlCharactersAreNotPassedOn) {
  const TempDir folder;
  folder.write("crash.txt", "signal 11 thread \x1b[2J\n\x1b]0;x\n");
  const auto report = launch::read_crash_file(folder.path() / "crash.txt");
  EXPECT_EQ(report->cause.find('\x1b'), std::string::npos);
  EXPECT_EQ(report->stack.at(0).find('\x1b'), std::string::npos);
}

TEST(ElfSymbols, DamagedFilesHaveNone) {
  const TempDir folder;
  folder.write("short",
               "\x7f"
               "ELF");
  EXPECT_FALSE(launch::find_symbol(folder.path() / "short", 16));
  std::string header(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  header.resize(64, '\xff');
  folder.write("odd", header);
  EXPECT_FALSE(launch::find_symbol(folder.path() / "odd", 16));
}

}  // namespace
}  // namespace lockstep
