#include "lockstep/board/curve_json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

TEST(CurveJson, HasStepsValuesAndGaps) {
  std::vector<plot::NamedSeries> metrics(2);
  metrics[0].name = "a\"b";
  metrics[0].series.add(1, 0.5);
  metrics[0].series.add(2, NAN);
  metrics[0].series.add(1'234'567, 0.25);
  metrics[1].name = "other";
  EXPECT_EQ(board::curves_json(metrics, {"a\"b"}, 100),
            R"({"a\"b":{"x":[1,1234567,1234567],"y":[0.5,null,0.25],"n":3}})");
  EXPECT_EQ(board::curves_json({}, {}, 100), "{}");
  EXPECT_EQ(board::curves_json(metrics, {"other"}, 100),
            R"({"other":{"x":[],"y":[],"n":0}})");
}

TEST(CurveJson, ThinsOutAndKeepsSpikes) {
  plot::Series series;
  for (int step = 0; step < 100'000; ++step) {
    series.add(step, step == 54'321 ? 100 : step == 60'000 ? -100 : 1);
  }
  const auto lines = board::thinned(series.lines(), 200);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_LE(lines[0].size(), 200U);
  double low = 0;
  double high = 0;
  double last = -1;
  for (const plot::Point point : lines[0]) {
    EXPECT_GE(point.x, last);
    last = point.x;
    low = std::min(low, point.y);
    high = std::max(high, point.y);
  }
  EXPECT_EQ(low, -100);
  EXPECT_EQ(high, 100);
}

}  // namespace
}  // namespace lockstep
