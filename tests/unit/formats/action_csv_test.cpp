#include "lockstep/formats/action_csv.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "lockstep/error.h"
#include "support/messages.h"

namespace lockstep {
namespace {

constexpr const char* kHeader = "x,y,z,roll,pitch,yaw,gripper\n";

std::string csv_refusal(const std::string& content) {
  return testing::refusal<FormatError>(
      [&] { formats::parse_action_csv(content, "'a.csv'"); });
}

TEST(ActionCsv, GivesBackWhatWasWritten) {
  const std::vector<formats::Action> actions = {
      {0.1F, -1e-30F, 3e38F, -0.0F, 1.0F / 3, 16777217.0F, -1},
      {std::numeric_limits<float>::denorm_min(), 2, 3, 4, 5, 6, 1}};
  EXPECT_EQ(formats::parse_action_csv(formats::action_csv_text(actions), "a"),
            actions);
}

TEST(ActionCsv, FindsColumnsByName) {
  const auto actions = formats::parse_action_csv(
      ",gripper,yaw,pitch,roll,z,y,x,note\n0,7,6,5,4,3,2,1,\"a, b\"\n", "a");
  EXPECT_EQ(actions, (std::vector<formats::Action>{{1, 2, 3, 4, 5, 6, 7}}));
}

TEST(ActionCsv, TakesTheFirstSevenColumnsOfOtherNames) {
  const auto actions = formats::parse_action_csv(
      "a0,a1,a2,a3,a4,a5,a6,x\n1,2,3,4,5,6,7,8\n", "a");
  EXPECT_EQ(actions, (std::vector<formats::Action>{{1, 2, 3, 4, 5, 6, 7}}));
}

TEST(ActionCsv, ReadsWhatOtherProgramsWrite) {
  // A byte order mark, Windows' line ends, quotes, blanks, an empty line, a
  // plus sign, no line end at the end.
  const auto actions = formats::parse_action_csv(
      "\xEF\xBB\xBF\"x\",y,z,roll,pitch,yaw,\"gripper\"\r\n"
      "1, 2 ,\"3\",+4,5e0,6.0,-1\r\n\r\n"
      "1,2,3,4,5,6,1",
      "a");
  EXPECT_EQ(actions, (std::vector<formats::Action>{{1, 2, 3, 4, 5, 6, -1},
                                                   {1, 2, 3, 4, 5, 6, 1}}));
}

TEST(ActionCsv, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(
      csv_refusal(std::string(kHeader) + "1,2,3,4,5,6,7\n1,2,nan,4,5,6,7\n"),
      "'a.csv', line 3: column 'z' (z) holds 'nan', which is not a finite "
      "number");
  EXPECT_EQ(csv_refusal(std::string(kHeader) + "\n1,2,3,4,5,6\n"),
            "'a.csv', line 3: 6 fields where the header has 7");
  EXPECT_EQ(csv_refusal("1,2,3,4,5,6,7\n1,2,3,4,5,6,7\n"),
            "'a.csv': the header is missing; write a first line "
            "x,y,z,roll,pitch,yaw,gripper");
  EXPECT_EQ(csv_refusal("x;y;z;roll;pitch;yaw;gripper\n1;2;3;4;5;6;7\n"),
            "'a.csv': 1 columns instead of at least 7; the header is "
            "x,y,z,roll,pitch,yaw,gripper, with commas");
  EXPECT_EQ(csv_refusal(""),
            "'a.csv' is empty; it holds a header x,y,z,roll,pitch,yaw,gripper "
            "and one line per frame");
  EXPECT_EQ(csv_refusal("\"x,y\n1"),
            "'a.csv', line 1: a quoted field does not end");
}

TEST(ActionCsv, RefusesWhatNoFloatHolds) {
  for (const char* field : {"", "inf", "-inf", "1e39", "1e400", "0x1p3", "1 2",
                            "--1", "+-1", "1,5", "one", "\xFF"}) {
    EXPECT_NE(csv_refusal(std::string(kHeader) + field + ",2,3,4,5,6,7\n"),
              "accepted")
        << field;
  }
}

TEST(ActionCsv, NamesLinesBehindQuotedLineEnds) {
  EXPECT_EQ(
      csv_refusal("x,y,z,roll,pitch,yaw,gripper,note\n"
                  "1,2,3,4,5,6,7,\"a\nb\"\n1,2,3,4,5,6,,c\n"),
      "'a.csv', line 4: column 'gripper' (gripper) holds '', which is not a "
      "finite number");
}

TEST(ActionCsv, OnlyFormatErrorsLeaveWhateverTheBytes) {
  std::mt19937 random(7);
  const std::string alphabet = "\"\",,\n\r 0123456789.-+einaxyz\xEF\xBB\xBF;";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = round % 2 == 0 ? kHeader : "";
    const size_t size = random() % 60;
    for (size_t i = 0; i < size; ++i)
      text += alphabet[random() % alphabet.size()];
    csv_refusal(text);
  }
}

}  // namespace
}  // namespace lockstep
