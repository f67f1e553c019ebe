// Several nodes on one machine.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "faults/launcher.h"
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

TEST(NodesOfOneMachine, AreNotDisturbedByStrangers) {
  const testing::TempDir folder;
  const std::string port = testing::free_port();
  const std::string go = (folder.path() / "go").string();
  const std::string script = "echo up $RANK; while [ ! -e " + go +
                             " ]; do sleep 0.2; done; echo done $RANK";
  Process host(half(port, script));
  ASSERT_TRUE(testing::wait_for(
      [&] { return host.err().find("waiting for 2") != std::string::npos; },
      60));
  // Before the other node is there, and while the job runs.
  constexpr int64_t kStrangers = 2000;
  EXPECT_EQ(testing::connect_as_stranger(std::stoi(port), kStrangers).refused,
            0);
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
  // One line per reason, whatever their number.
  expect_in(result.err, "bytes that are not of a launcher");
  expect_in(result.err, "a launcher of another job");
  expect_in(result.err, "a launcher of another version of Lockstep");
  EXPECT_LE(count(result.err, "at the launchers' port"), 6) << result.err;
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
  ASSERT_TRUE(testing::wait_for(
      [&] { return third.err().find("joining 2") != std::string::npos; }, 60));
  folder.write("go", "");
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(second.wait().exit_code, 0);
  const auto result = third.wait();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace lockstep
