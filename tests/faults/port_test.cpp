// MASTER_PORT under real jobs.
#include <gtest/gtest.h>

#include <memory>

#include "faults/launcher.h"
#include "lockstep/base/strings.h"

namespace lockstep::testing {
namespace {

// Both ranks use the job's store: rank 1 sets the number of its job, rank 0
// waits for it; a mix of two jobs shows.
constexpr const char* kMeet = R"(
store = connect()
if os.environ["RANK"] == "1":
    store.sendall(b"\x01" + text("/job") + text(os.environ["JOB"]))
else:
    store.sendall(b"\x06" + struct.pack("<Q", 1) + text("/job"))
    assert receive(store, 1) == b"\0"
    store.sendall(b"\x03" + text("/job"))
    size, = struct.unpack("<Q", receive(store, 8))
    assert receive(store, size).decode() == os.environ["JOB"]
store.sendall(b"\x0d" + bytes(4))
assert receive(store, 4) == bytes(4)
)";

Words meeting_job(const Words& options) {
  return python_job(options, std::string(kStoreInPython) + kMeet);
}

TEST(Port, EightJobsAtOnceDoNotMeet) {
  std::vector<std::unique_ptr<Process>> jobs;
  for (int i = 0; i < 8; ++i) {
    jobs.push_back(std::make_unique<Process>(
        meeting_job({"--nproc=2"}),
        ProcessOptions{.environment = {{"JOB", std::to_string(i)}}}));
  }
  for (const auto& job : jobs) {
    const auto result = job->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

class TakenPort : public ::testing::Test {
 protected:
  TakenPort()
      : holder_(
            {LOCKSTEP_PYTHON, "-u", "-c",
             "import socket, time\n"
             "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
             "print('port', s.getsockname()[1], 'end'); time.sleep(60)\n"}) {
    EXPECT_TRUE(holder_.wait_for_output("end"));
    port_ = base::split(holder_.out(), ' ')[1];
  }

  void expect_refusal(const ProcessResult& result) const {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, "port " + port_)) << result.err;
    EXPECT_TRUE(
        contains(result.err, "process " + std::to_string(holder_.pid()) + " ("))
        << result.err;
    EXPECT_TRUE(contains(result.err, "leave --master-port"));
  }

  Process holder_;
  std::string port_;
};

TEST_F(TakenPort, IsRefusedBeforeAnythingStarts) {
  expect_refusal(
      run_shell({"--nproc=2", "--master-port", port_}, "echo started"));
  expect_refusal(run_shell({"--nproc=2"}, "echo started",
                           {.environment = {{"MASTER_PORT", port_}}}));
  expect_refusal(run_shell({"--rdzv-endpoint=127.0.0.1:" + port_}, "true"));
}

TEST_F(TakenPort, OfAnEndedProcessIsFreeAgain) {
  holder_.send(9);
  holder_.wait();
  const auto result = run(meeting_job({"--nproc=2", "--master-port", port_}),
                          {.environment = {{"JOB", "1"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // The connection of the first run may still be closing.
  const auto again = run(meeting_job({"--nproc=2", "--master-port", port_}),
                         {.environment = {{"JOB", "1"}}});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

}  // namespace
}  // namespace lockstep::testing
