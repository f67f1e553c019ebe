// Every class of cause, provoked with real processes. Those that need libtorch:
// tests/distributed/faults_test.cpp and train_failure_test.cpp; a GPU's memory:
// tests/gpu/failure_test.cpp.
#include <gtest/gtest.h>

#include <chrono>

#include "faults/launcher.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/cause.h"
#include "support/control_group.h"
#include "support/free_port.h"
#include "support/name_lookup.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using launch::Cause;

// The promise is 2 s (bench/verdict.py); a loaded machine gets more.
constexpr double kMostSeconds = 60;

// The last part of stderr is the verdict, inside the frame or without one.
void expect_verdict(const ProcessResult& result, Cause cause,
                    const std::string& evidence) {
  const launch::CauseText& text = launch::text_of(cause);
  const auto at = result.err.find("Verdict: ");
  ASSERT_NE(at, std::string::npos) << result.err;
  const Words lines = base::split(result.err.substr(at), '\n');
  ASSERT_GE(lines.size(), 6U) << result.err;
  EXPECT_EQ(lines[0], "Verdict: " + std::string(text.name)) << result.err;
  EXPECT_TRUE(contains(lines[1], "  shown by: ")) << lines[1];
  EXPECT_TRUE(contains(lines[1], evidence)) << lines[1];
  EXPECT_EQ(lines[2], "  meaning : " + std::string(text.meaning));
  EXPECT_TRUE(lines[3].starts_with("  next    : ")) << lines[3];
  EXPECT_GT(lines[3].size(), std::string("  next    : ").size());
  EXPECT_EQ(lines[4], "  see     : docs/reference/verdicts.md#" +
                          std::string(text.anchor));
  // Nothing but the frame's border follows.
  EXPECT_TRUE(lines[5].empty() || lines[5].starts_with("=====")) << lines[5];
}

std::string after_mark(const std::string& failure) {
  return "import os, sys, time, signal, mmap\n"
         "def mark(): open(os.environ['MARK'], 'w').write(str(time.time()))\n"
         "if os.environ['RANK'] == '0': time.sleep(600)\n" +
         failure;
}

class VerdictTest : public ::testing::Test {
 protected:
  ProcessOptions options() const {
    ProcessOptions options = with_temp(temp_);
    options.environment["MARK"] = (temp_.path() / "mark").string();
    return options;
  }

  // Rank 1 runs the script behind mark(); rank 0 waits.
  ProcessResult fail(const std::string& script) const {
    const auto result =
        run(python_job({"--nproc=2"}, after_mark(script)), options());
    expect_quick();
    return result;
  }

  // The report is complete soon after the failure.
  void expect_quick() const {
    const auto failed =
        base::parse_number(base::trim(base::read_file(temp_.path() / "mark")));
    ASSERT_TRUE(failed);
    const double now = std::chrono::duration<double>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
    EXPECT_LT(now - *failed, kMostSeconds);
  }

  // A command behind it runs in a mount namespace of its own, after `setup` as
  // root of it.
  static Words in_namespace(const std::string& setup) {
    return {"unshare", "-Urm", "sh", "-c", setup + " && exec \"$@\"", "sh"};
  }

  ProcessResult run_in_namespace(const std::string& setup,
                                 const std::string& script) const {
    Words command = in_namespace(setup);
    for (const std::string& word :
         python_job({"--nproc=2"}, after_mark(script))) {
      command.push_back(word);
    }
    return run(command, options());
  }

  TempDir temp_;
};

TEST_F(VerdictTest, OutOfGpuMemory) {
  // The words of libtorch; without a GPU its error cannot be had.
  expect_verdict(
      fail("mark(); raise RuntimeError('CUDA out of memory. Tried to allocate "
           "20.00 MiB. GPU 0 has a total capacity of 1 GiB')"),
      Cause::kGpuMemory, "Tried to allocate 20.00 MiB");
}

TEST_F(VerdictTest, OutOfHostMemory) {
  expect_verdict(fail("mark(); raise MemoryError()"), Cause::kHostMemory,
                 "rank 1: MemoryError");
}

TEST_F(VerdictTest, TheKernelsOutOfMemoryKiller) {
  const LimitedGroup group(int64_t{96} << 20);
  if (!group.is_ready()) {
    GTEST_SKIP() << "no right to make a control group with a memory limit; "
                    "memory_deaths_test checks the words";
  }
  Words command = {"sh", "-c",
                   "echo $$ > " + group.processes() + " && exec \"$@\"", "sh"};
  for (const std::string& word : python_job(
           {"--nproc=2"}, after_mark("mark(); room = b'x' * (400 << 20)"))) {
    command.push_back(word);
  }
  const auto result = run(command, options());
  EXPECT_EQ(result.exit_code, 137) << result.err;
  expect_quick();
  expect_verdict(result, Cause::kHostMemory,
                 "killed by the kernel's out-of-memory killer");
}

TEST_F(VerdictTest, Exception) {
  expect_verdict(fail("mark(); raise ValueError('a bad value')"),
                 Cause::kException, "rank 1: ValueError: a bad value");
  expect_verdict(fail("mark(); os._exit(9)"), Cause::kException,
                 "exit code 9 and wrote no error file");
}

TEST_F(VerdictTest, Signal) {
  expect_verdict(fail("mark(); os.kill(os.getpid(), signal.SIGSEGV)"),
                 Cause::kSignal, "died by SIGSEGV: invalid memory access");
}

TEST_F(VerdictTest, DataStarvation) {
  expect_verdict(
      run(job({"--nproc=2", LOCKSTEP_STATUS_WORKER, "starve"}), options()),
      Cause::kDataStarvation, "phase: loading data");
}

TEST_F(VerdictTest, Stall) {
  expect_verdict(
      run(job({"--nproc=2", LOCKSTEP_STATUS_WORKER, "stop"}), options()),
      Cause::kStall, "is stopped (SIGSTOP)");
}

TEST_F(VerdictTest, UnequalNumberOfBatches) {
  // The launcher has seen the end of rank 1 when its process is gone.
  const auto result = run_shell(
      {"--nproc=2"},
      R"([ $RANK = 1 ] && { echo $$ > $MARK.new; mv $MARK.new $MARK; exit 0; }
         while [ ! -e $MARK ]; do sleep 0.01; done
         while kill -0 $(cat $MARK) 2> /dev/null; do sleep 0.01; done
         echo '{"message": {"message": "PeerError: Connection closed by peer"}}' \
           > $TORCHELASTIC_ERROR_FILE
         exit 5)",
      options());
  expect_verdict(result, Cause::kUnequalBatches,
                 "exited with 0 while other ranks still needed it");
}

TEST_F(VerdictTest, DesynchronisedCollectives) {
  expect_verdict(
      run(job({"--nproc=2", LOCKSTEP_STATUS_WORKER, "desync"}), options()),
      Cause::kDesync, "last collective: broadcast #2");
}

TEST_F(VerdictTest, Port) {
  const ListeningPort taken;
  const auto result = run(job({"--nproc=2", "--master-port",
                               std::to_string(taken.number()), "true"}),
                          options());
  EXPECT_EQ(result.exit_code, 2);
  expect_verdict(result, Cause::kPort, "(master port) is taken by process");
}

TEST_F(VerdictTest, Interface) {
  Words command = in_namespace(kOnlyHostsFile);
  for (const std::string& word :
       job({"--nproc=2", "--master-addr", "no-such-host.invalid", "true"})) {
    command.push_back(word);
  }
  const auto result = run(command, options());
  EXPECT_EQ(result.exit_code, 2);
  expect_verdict(result, Cause::kInterface, "no-such-host.invalid");
}

TEST_F(VerdictTest, SharedMemory) {
  const std::string setup = "mount -t tmpfs -o size=64k tmpfs /dev/shm";
  const auto full = run_in_namespace(
      setup,
      "mark()\n"
      "name = '/dev/shm/block'\n"
      "try: os.posix_fallocate(os.open(name, os.O_RDWR | os.O_CREAT), 0, 1 << "
      "20)\n"
      "except OSError as error: raise OSError(error.errno, error.strerror, "
      "name)\n");
  expect_quick();
  expect_verdict(full, Cause::kSharedMemory, "/dev/shm");
  const auto bus = run_in_namespace(
      setup,
      "file = open('/dev/shm/block', 'w+b', 0); file.truncate(1 << 20)\n"
      "pages = mmap.mmap(file.fileno(), 1 << 20); mark()\n"
      "for i in range(0, 1 << 20, 4096): pages[i] = 1\n");
  expect_quick();
  expect_verdict(bus, Cause::kSharedMemory, "died by SIGBUS, and /dev/shm has");
}

TEST_F(VerdictTest, DiskFull) {
  const std::string place = (temp_.path() / "disk").string();
  fs::create_directory(place);
  const auto result = run_in_namespace(
      "mount -t tmpfs -o size=64k tmpfs " + place,
      "mark(); file = open('" + place +
          "/file', 'wb', 0)\nwhile True: file.write(b'x' * 4096)\n");
  expect_quick();
  expect_verdict(result, Cause::kDiskFull, "No space left on device");
}

TEST_F(VerdictTest, NaN) {
  expect_verdict(
      fail("mark(); raise FloatingPointError('Loss is nan, stopping')"),
      Cause::kNan, "Loss is nan");
}

TEST_F(VerdictTest, TheCauseOfARestartedJobIsThatOfItsLastAttempt) {
  const auto result = run_shell({"--nproc=1", "--max-restarts=1"},
                                "[ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 3;"
                                "kill -SEGV $$",
                                options());
  expect_verdict(result, Cause::kSignal, "SIGSEGV");
}

TEST_F(VerdictTest, IsLeftInTheRunFolder) {
  const fs::path folder = temp_.path() / "run";
  fs::create_directory(folder);
  const auto result = run_shell(
      {"--nproc=2"},
      "[ $RANK = 0 ] && printf %s " + folder.string() +
          " > $(dirname $TORCHELASTIC_ERROR_FILE)/run_folder && exit 3; "
          "sleep 600",
      options());
  EXPECT_EQ(result.exit_code, 3);
  const std::string file = base::read_file(folder / "verdict.json");
  EXPECT_TRUE(contains(file, "\"cause\":\"exception\"")) << file;
  EXPECT_TRUE(contains(file, "docs/reference/verdicts.md#exception")) << file;
}

TEST(VerdictWords, AreThoseOfTheDocuments) {
  for (const char* page : {"verdicts.md", "verdicts.zh-CN.md"}) {
    const std::string text =
        base::read_file(fs::path(SOURCE_FOLDER) / "docs" / "reference" / page);
    for (const launch::CauseText& cause : launch::cause_texts()) {
      for (const std::string_view words :
           {cause.name, cause.meaning, cause.next}) {
        EXPECT_TRUE(contains(text, std::string(words)))
            << page << " lacks: " << words;
      }
      EXPECT_TRUE(contains(text, "#" + std::string(cause.anchor)))
          << page << " links to no " << cause.anchor;
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
