// MASTER_PORT under real jobs.
#include <gtest/gtest.h>

#include <memory>

#include "faults/launcher.h"
#include "lockstep/base/strings.h"

namespace lockstep::testing {
namespace {

// Rank 0 listens as a TCP store does, rank 1 connects and sends the number of
// its job; a mix of two jobs shows.
constexpr const char* kMeet = R"(
import os, socket, sys, time
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("0.0.0.0", address[1]))
    server.listen(8)
    peer, _ = server.accept()
    assert peer.recv(100).decode() == os.environ["JOB"]
else:
    for _ in range(400):
        try:
            peer = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.02)
    peer.send(os.environ["JOB"].encode())
)";

TEST(Port, EightJobsAtOnceDoNotMeet) {
  std::vector<std::unique_ptr<Process>> jobs;
  for (int i = 0; i < 8; ++i) {
    jobs.push_back(std::make_unique<Process>(
        python_job({"--nproc=2"}, kMeet),
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
    port_ = split(holder_.out(), ' ')[1];
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
  const auto result =
      run(python_job({"--nproc=2", "--master-port", port_}, kMeet),
          {.environment = {{"JOB", "1"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // The connection of the first run may still be closing.
  const auto again =
      run(python_job({"--nproc=2", "--master-port", port_}, kMeet),
          {.environment = {{"JOB", "1"}}});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

}  // namespace
}  // namespace lockstep::testing
