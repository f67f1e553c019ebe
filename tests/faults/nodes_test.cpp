// Several nodes on one machine.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "faults/launcher.h"
#include "lockstep/launch/processes.h"
#include "support/free_port.h"
#include "support/hostile.h"

namespace lockstep {
namespace {

using testing::count;
using testing::expect_in;
using testing::Process;
using testing::shell_job;
using testing::Words;

// One half of a job of two nodes.
Words half(const std::string& port, const std::string& script,
           const Words& more = {}) {
  Words options = {"--nnodes=2", "--nproc=2", "--rdzv-id=job",
                   "--rdzv-endpoint=127.0.0.1:" + port};
  options.insert(options.end(), more.begin(), more.end());
  return shell_job(options, script);
}

bool says(const Process& process, const std::string& text) {
  return testing::wait_for(
      [&] { return process.err().find(text) != std::string::npos; }, 120);
}

// Why the strangers of the tests are refused.
constexpr const char* kReasons[] = {"bytes that are not of a launcher",
                                    "a launcher of another job",
                                    "a launcher of another version of Lockstep",
                                    "it closed before it said who it is"};

TEST(NodesOfOneMachine, AreNotDisturbedByStrangers) {
  const testing::TempDir folder;
  const std::string port = testing::free_port();
  const std::string go = (folder.path() / "go").string();
  const std::string script = "echo up $RANK; while [ ! -e " + go +
                             " ]; do sleep 0.2; done; echo done $RANK";
  Process host(half(port, script));
  ASSERT_TRUE(says(host, "waiting for 2"));
  // Before the other node is there, and while the job runs.
  constexpr int64_t kStrangers = 2000;
  EXPECT_EQ(testing::connect_as_stranger(std::stoi(port), kStrangers).refused,
            0);
  // While it waits.
  for (const char* reason : kReasons) {
    EXPECT_TRUE(says(host, std::string("127.0.0.1): ") + reason)) << reason;
  }
  Process other(half(port, script));
  ASSERT_TRUE(host.wait_for_output("up 1"));
  ASSERT_TRUE(other.wait_for_output("up 3")) << other.err();
  EXPECT_EQ(testing::connect_as_stranger(std::stoi(port), kStrangers).refused,
            0);
  folder.write("go", "");
  const auto result = host.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(other.wait().exit_code, 0);
  expect_in(result.out, "done 0");
  // A line for the first and one for all others, whatever their number.
  for (const char* reason : kReasons) {
    EXPECT_LE(count(result.err, std::string(": ") + reason), 2) << result.err;
  }
}

// The addresses at which a process listens, in the kernel's hexadecimal form.
Words listeners_of(pid_t pid) {
  std::set<std::string> inodes;
  for (const auto& entry : std::filesystem::directory_iterator(
           "/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code ignored;
    const std::string target =
        std::filesystem::read_symlink(entry.path(), ignored).string();
    if (target.starts_with("socket:[")) {
      inodes.insert(target.substr(8, target.size() - 9));
    }
  }
  Words addresses;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Words fields{std::istream_iterator<std::string>(words), {}};
      constexpr const char* kListening = "0A";
      if (fields.size() > 9 && fields[3] == kListening &&
          inodes.contains(fields[9])) {
        addresses.push_back(fields[1]);
      }
    }
  }
  return addresses;
}

TEST(NodesOfOneMachine, ListenOnTheLoopbackInterfaceOnly) {
  const testing::TempDir folder;
  const std::string port = testing::free_port();
  const std::string go = (folder.path() / "go").string();
  const std::string script =
      "echo up $RANK; while [ ! -e " + go + " ]; do sleep 0.1; done";
  Process host(half(port, script));
  Process other(half(port, script));
  ASSERT_TRUE(host.wait_for_output("up")) << host.err();
  ASSERT_TRUE(other.wait_for_output("up")) << other.err();
  Words addresses = listeners_of(testing::find_keeper(host.pid()));
  for (const std::string& more :
       listeners_of(testing::find_keeper(other.pid()))) {
    addresses.push_back(more);
  }
  EXPECT_EQ(addresses.size(), 2u);  // The store and the launchers' port.
  for (const std::string& address : addresses) {
    EXPECT_EQ(address.substr(0, 9), "0100007F:");
  }
  folder.write("go", "");
  EXPECT_EQ(host.wait().exit_code, 0) << host.err();
  EXPECT_EQ(other.wait().exit_code, 0) << other.err();
}

TEST(NodesOfOneMachine, AThirdOneIsToldThatTheJobEndedWithoutIt) {
  const testing::TempDir folder;
  const std::string port = testing::free_port();
  const std::string go = (folder.path() / "go").string();
  const std::string script =
      "echo up $RANK; while [ ! -e " + go + " ]; do sleep 0.1; done";
  Process first(half(port, script));
  Process second(half(port, script));
  ASSERT_TRUE(first.wait_for_output("up")) << first.err();
  ASSERT_TRUE(second.wait_for_output("up")) << second.err();
  Process third(half(port, script));
  ASSERT_TRUE(says(third,
                   "the job has its 2 nodes; this one takes the place of the "
                   "next that is lost"))
      << third.err();
  folder.write("go", "");
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(second.wait().exit_code, 0);
  const auto result = third.wait();
  EXPECT_EQ(result.exit_code, 2);
  expect_in(result.err,
            "this node cannot join: the job ended without this node");
  EXPECT_EQ(result.out, "");
}

TEST(NodesOfOneMachine, NameAStuckRankOfTheOtherWhileTheJobRuns) {
  const testing::TempDir folder;
  const std::string port = testing::free_port();
  // Rank 3 stops itself; ranks 0 and 1 of the host wait for it.
  const std::string script = std::string("exec " LOCKSTEP_STUCK_WORKER) +
                             " stop 3 " + folder.path().string() + " 60";
  Process host(half(port, script));
  ASSERT_TRUE(says(host, "waiting for 2")) << host.err();
  Process other(half(port, script));
  ASSERT_TRUE(says(other, "rank 3 (pid ")) << other.err();
  ASSERT_TRUE(says(host, "(node 1): rank 3 (pid ")) << host.err();
  const std::string text = host.err();
  const auto begin = text.find("(node 1): rank 3 (pid ");
  expect_in(text.substr(begin, text.find('\n', begin) - begin), "is stuck");
  folder.write("go", "");
  folder.write("end", "");
  for (const launch::ProcessInfo& process :
       launch::find_descendants(other.pid())) {
    kill(process.pid, SIGCONT);
  }
  EXPECT_EQ(host.wait().exit_code, 0) << host.err();
  EXPECT_EQ(other.wait().exit_code, 0) << other.err();
}

}  // namespace
}  // namespace lockstep
