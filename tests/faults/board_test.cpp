// `lockstep runs` and `lockstep board` as programs.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <regex>

#include "faults/launcher.h"
#include "lockstep/base/files.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

constexpr double kLimit = 120;

class BoardProgram : public ::testing::Test {
 protected:
  BoardProgram() {
    std::filesystem::create_directory(folder_.path() / "a");
    folder_.write("a/metrics.jsonl", "{\"step\":3,\"train/loss\":0.5}\n");
  }

  std::vector<std::string> command(std::vector<std::string> words) const {
    words.insert(words.begin(), LOCKSTEP_PROGRAM);
    words.push_back(folder_.path().string());
    return words;
  }

  // The answer of the board at the address that it printed.
  static std::string ask(const std::string& printed, const std::string& text) {
    std::smatch match;
    EXPECT_TRUE(std::regex_search(printed, match, std::regex(":([0-9]+)/")));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(match[1])));
    const base::FileDescriptor client(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
    base::write_all(client.get(), text);
    std::string got;
    std::array<char, 4096> buffer{};
    ssize_t size = 0;
    while ((size = read(client.get(), buffer.data(), buffer.size())) > 0) {
      got.append(buffer.data(), static_cast<size_t>(size));
    }
    return got;
  }

  static std::string request(const std::string& path, const std::string& host) {
    return "GET " + path + " HTTP/1.1\r\nHost: " + host +
           "\r\nConnection: close\r\n\r\n";
  }

  const TempDir folder_;
};

TEST_F(BoardProgram, RunsAreListed) {
  const auto table = run(command({"runs"}));
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_TRUE(contains(table.out, "unknown")) << table.out;
  EXPECT_TRUE(contains(run(command({"runs", "--json"})).out, "\"id\":\"a\""));
  const auto none = run({LOCKSTEP_PROGRAM, "runs", "/nowhere"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(none.err.starts_with("lockstep runs: /nowhere: ")) << none.err;
  EXPECT_TRUE(contains(run({LOCKSTEP_PROGRAM, "board", "--help"}).out,
                       "usage: lockstep board"));
}

TEST_F(BoardProgram, ServesItsPageUntilItIsStopped) {
  Process board(command({"board", "--port", "0"}));
  ASSERT_TRUE(board.wait_for_output("Ctrl-C", kLimit)) << board.err();
  const std::string printed = board.out();
  EXPECT_TRUE(contains(ask(printed, request("/", "localhost")), "200 OK"));
  EXPECT_TRUE(contains(ask(printed, request("/", "evil.example")), " 403 "));
  EXPECT_TRUE(contains(ask(printed, request("/../../etc/passwd", "localhost")),
                       " 404 "));
  EXPECT_TRUE(
      contains(ask(printed, std::string("\x16\x03\x01\0\0", 5)), " 400 "));
  EXPECT_TRUE(wait_for(
      [&] {
        return contains(ask(printed, request("/api/runs", "localhost")),
                        "\"id\":\"a\"");
      },
      kLimit));
  board.send(SIGINT);
  EXPECT_EQ(board.wait().exit_code, 0);
}

TEST_F(BoardProgram, ElsewhereThanAtLoopbackItAsksForAToken) {
  Process board(command({"board", "--port", "0", "--host", "0.0.0.0"}));
  ASSERT_TRUE(board.wait_for_output("Ctrl-C", kLimit)) << board.err();
  const std::string printed = board.out();
  std::smatch match;
  ASSERT_TRUE(std::regex_search(printed, match, std::regex("token=(\\w{32})")));
  EXPECT_TRUE(contains(ask(printed, request("/", "localhost")), " 401 "));
  const std::string entry =
      ask(printed, request("/?token=" + match[1].str(), "localhost"));
  EXPECT_TRUE(contains(entry, " 303 "));
  EXPECT_TRUE(contains(entry, "Set-Cookie: lockstep_board="));
  board.send(SIGTERM);
  EXPECT_EQ(board.wait().exit_code, 0);
}

}  // namespace
}  // namespace lockstep::testing
