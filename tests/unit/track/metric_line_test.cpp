#include "lockstep/track/metric_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep {
namespace {

using track::MetricLineParser;

std::string shown(const MetricLineParser& parser) {
  std::string text = std::to_string(parser.step());
  for (const track::MetricValue& one : parser.values()) {
    text += " " + std::string(one.name) + "=" + std::to_string(one.value);
  }
  return text;
}

std::string parsed(std::string_view line) {
  MetricLineParser parser;
  return parser.parse(line) ? shown(parser) : "no record";
}

TEST(MetricLine, ReadsWhatLockstepWrites) {
  EXPECT_EQ(parsed(R"({"step":8,"train/loss":0.5,"val/a":-1e-1})"),
            "8 train/loss=0.500000 val/a=-0.100000");
  EXPECT_EQ(parsed(R"({"step":-3})"), "-3");
  EXPECT_EQ(parsed(R"({"step":1,"a":"nan","b":"inf","c":"-inf"})"),
            "1 a=nan b=inf c=-inf");
  MetricLineParser parser;
  ASSERT_TRUE(parser.parse(R"({"step":1,"x":1.317281037569046})"));
  EXPECT_EQ(parser.values()[0].value, 1.317281037569046);
}

TEST(MetricLine, ReadsAnyOtherJsonAlike) {
  EXPECT_EQ(parsed(R"( { "step" : 8 , "a" : 0.5 } )"), "8 a=0.500000");
  EXPECT_EQ(parsed(R"({"a":2,"step":8})"), "8 a=2.000000");
  EXPECT_EQ(parsed("{\"step\":8,\"\\u0061\":2}"), "8 a=2.000000");
  EXPECT_EQ(parsed("{\"step\":8,\"\xc3\xa9\":2}"), "8 \xc3\xa9=2.000000");
  EXPECT_EQ(parsed(R"({"step":8,"a":[1],"b":null,"c":"text","d":true,"e":1})"),
            "8 e=1.000000");
}

TEST(MetricLine, RefusesWhatIsNotARecord) {
  for (const char* line :
       {"", "{", "3", "[]", "null", R"({"a":1})", R"({"step":1.5})",
        R"({"step":"1"})", R"({"step":1)", R"({"step":1,})", R"({"step":1}x)",
        R"({"step":1,"a":inf})", R"({"step":1,"a":nan})", "{\"step\":1,\"a",
        "{\"step\":1,\"a\xff\":1}", "\xff\xfe"}) {
    EXPECT_EQ(parsed(line), "no record") << line;
  }
}

TEST(MetricLine, AParserIsUsedAgainAfterABadLine) {
  MetricLineParser parser;
  ASSERT_TRUE(parser.parse(R"({"step":1,"a":1,"b":2})"));
  ASSERT_FALSE(parser.parse(R"({"step":1,"a":1,"b":)"));
  ASSERT_TRUE(parser.parse(R"({"step":2,"c":3})"));
  EXPECT_EQ(shown(parser), "2 c=3.000000");
}

}  // namespace
}  // namespace lockstep
