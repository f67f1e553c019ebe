#include "lockstep/board/board_options.h"

#include <gtest/gtest.h>

#include "lockstep/board/board_command.h"
#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

std::string refusal(const Words& words) {
  try {
    board::parse_board_options(words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(BoardOptions, ListensAtLoopbackUnlessAsked) {
  const board::BoardOptions usual = board::parse_board_options(Words{});
  EXPECT_EQ(usual.host, "127.0.0.1");
  EXPECT_EQ(usual.port, board::kUsualPort);
  EXPECT_FALSE(usual.needs_token);
  const board::BoardOptions asked = board::parse_board_options(Words{
      "runs", "--host", "0.0.0.0", "--port=0", "--token", "--token-file", "t"});
  EXPECT_EQ(asked.folder, "runs");
  EXPECT_EQ(asked.host, "0.0.0.0");
  EXPECT_EQ(asked.port, 0);
  EXPECT_TRUE(asked.needs_token);
  EXPECT_EQ(asked.token_file, "t");
  EXPECT_TRUE(board::parse_board_options(Words{"-h"}).help);
}

TEST(BoardOptions, SaysWhatIsWrong) {
  EXPECT_NE(refusal({"--port", "70000"}).find("0 to 65535"), std::string::npos);
  EXPECT_NE(refusal({"--port"}).find("a value is missing"), std::string::npos);
  EXPECT_NE(refusal({"--prot"}).find("unknown option"), std::string::npos);
  EXPECT_NE(refusal({"a", "b"}).find("one folder"), std::string::npos);
}

TEST(Board, RefusesAFolderThatIsNotThereAndAWeakToken) {
  const testing::TempDir folder;
  EXPECT_THROW(board::Board({.folder = folder.path() / "none"}), ConfigError);
  const std::string token = folder.write("token", "short\n");
  EXPECT_THROW(board::Board({.folder = folder.path(), .token_file = token}),
               ConfigError);
  EXPECT_THROW(
      board::Board({.folder = folder.path(), .host = "no.such.name.invalid"}),
      ConfigError);
}

}  // namespace
}  // namespace lockstep
