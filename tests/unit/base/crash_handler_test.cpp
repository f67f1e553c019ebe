#include "lockstep/base/crash_handler.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "lockstep/base/files.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

// The signal that ends a child which runs `body` under the handler.
int death_of(const std::filesystem::path& file,
             const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      ::signal(signal, SIG_DFL);
    }
    base::install_crash_handler(file);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// noinline: the stack shall name it.
[[gnu::noinline]] void crash_here() {
  volatile int* volatile nowhere = reinterpret_cast<int*>(16);
  *nowhere = 1;
}

[[gnu::noinline]] int overflow_stack(int depth) {
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : overflow_stack(depth + 1) + room[0];
}

TEST(CrashHandler, WritesSignalAddressAndStackAndKeepsTheSignal) {
  const TempDir folder;
  const auto file = folder.path() / "crash.txt";
  EXPECT_EQ(death_of(file, crash_here), SIGSEGV);
  const std::string text = base::read_file(file);
  EXPECT_TRUE(text.starts_with("signal 11 fault 0x10 thread ")) << text;
  EXPECT_NE(text.find("test_base("), std::string::npos) << text;
}

TEST(CrashHandler, AnyOfTheSignalsMayBeRaised) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    const TempDir folder;
    const auto file = folder.path() / "crash.txt";
    EXPECT_EQ(death_of(file, [signal] { kill(getpid(), signal); }), signal);
    const std::string text = base::read_file(file);
    EXPECT_TRUE(
        text.starts_with("signal " + std::to_string(signal) + " raised "))
        << text;
  }
}

TEST(CrashHandler, TheSenderOfASignalIsNamed) {
  const TempDir folder;
  const auto file = folder.path() / "crash.txt";
  EXPECT_EQ(death_of(file,
                     [] {
                       const pid_t own = getpid();
                       if (fork() == 0) {
                         kill(own, SIGSEGV);
                         _exit(0);
                       }
                       for (;;) pause();
                     }),
            SIGSEGV);
  EXPECT_TRUE(base::read_file(file).starts_with("signal 11 sent "));
}

TEST(CrashHandler, AbortLeavesItsStack) {
  const TempDir folder;
  const auto file = folder.path() / "crash.txt";
  EXPECT_EQ(death_of(file, [] { std::abort(); }), SIGABRT);
  EXPECT_NE(base::read_file(file).find("abort"), std::string::npos);
}

TEST(CrashHandler, AStackOverflowLeavesItsStack) {
  const TempDir folder;
  const auto file = folder.path() / "crash.txt";
  EXPECT_EQ(death_of(file, [] { overflow_stack(0); }), SIGSEGV);
  EXPECT_NE(base::read_file(file).find("test_base("), std::string::npos);
}

TEST(CrashHandler, ThreadsThatCrashTogetherLeaveOneStack) {
  const TempDir folder;
  const auto file = folder.path() / "crash.txt";
  EXPECT_EQ(death_of(file,
                     [] {
                       std::vector<std::thread> threads;
                       for (int i = 0; i < 8; ++i) {
                         threads.emplace_back(crash_here);
                       }
                       for (auto& thread : threads) thread.join();
                     }),
            SIGSEGV);
  const std::string text = base::read_file(file);
  EXPECT_EQ(text.rfind("signal 11"), 0U) << text;
  EXPECT_NE(text.find("test_base("), std::string::npos) << text;
}

TEST(CrashHandler, LeavesTheHandlersOfOthersAlone) {
  const TempDir folder;
  const auto file = folder.path() / "crash.txt";
  EXPECT_EQ(death_of(file,
                     [&] {
                       ::signal(SIGSEGV, SIG_IGN);
                       base::install_crash_handler(file);
                       raise(SIGSEGV);
                     }),
            0);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(CrashHandler, TheFileLiesBesideTheErrorFileOfTheLauncher) {
  EXPECT_EQ(base::crash_file({}), "");
  EXPECT_EQ(base::crash_file({{"TORCHELASTIC_ERROR_FILE", "/a/0/error.json"}}),
            "")
      << "torchrun does not read it";
  EXPECT_EQ(base::crash_file({{"TORCHELASTIC_ERROR_FILE", "/a/0/error.json"},
                              {"LOCKSTEP_LAUNCHER", "1"}}),
            "/a/0/crash.txt");
}

}  // namespace
}  // namespace lockstep
