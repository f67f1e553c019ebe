#include "lockstep/plot/series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep {
namespace {

size_t num_points(const plot::Series::Lines& lines) {
  size_t count = 0;
  for (const auto& line : lines) count += line.size();
  return count;
}

TEST(Series, FewValuesAreKeptAsTheyAre) {
  plot::Series series;
  for (int step = 1; step <= 1000; ++step) series.add(step, std::sin(step));
  const auto lines = series.lines();
  ASSERT_EQ(lines.size(), 1U);
  ASSERT_EQ(lines[0].size(), 1000U);
  for (int step = 1; step <= 1000; ++step) {
    EXPECT_EQ(lines[0][size_t(step) - 1].x, step);
    EXPECT_EQ(lines[0][size_t(step) - 1].y, std::sin(step));
  }
}

TEST(Series, AMillionValuesBecomeAFewThatKeepEveryPeak) {
  plot::Series series;
  for (int step = 0; step < 1'000'000; ++step) {
    const double peak = step == 123'457 ? 50 : step == 777'777 ? -50 : 0;
    series.add(step, peak + std::sin(step));
  }
  const auto lines = series.lines();
  EXPECT_LE(num_points(lines), 2000U);
  EXPECT_GE(num_points(lines), 900U);
  double low = 0;
  double high = 0;
  double before = -1;
  for (const plot::Point& point : lines.at(0)) {
    low = std::min(low, point.y);
    high = std::max(high, point.y);
    EXPECT_LE(before, point.x);
    before = point.x;
  }
  EXPECT_EQ(high, 50 + std::sin(123'457));
  EXPECT_EQ(low, -50 + std::sin(777'777));
  EXPECT_EQ(series.highest()->x, 123'457);
  EXPECT_EQ(series.lowest()->x, 777'777);
  EXPECT_EQ(series.num_values(), 1'000'000);
  EXPECT_EQ(series.last()->x, 999'999);
}

TEST(Series, ValuesThatAreNotFiniteLeaveGaps) {
  plot::Series series;
  const std::vector<double> values = {NAN, 1, 2, NAN, INFINITY, 3, -INFINITY};
  for (size_t i = 0; i < values.size(); ++i) series.add(double(i), values[i]);
  const auto lines = series.lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].size(), 2U);
  EXPECT_EQ(lines[1].size(), 1U);
  EXPECT_EQ(lines[1][0].x, 5);
  EXPECT_EQ(series.smooth_lines().size(), 2U);
  EXPECT_EQ(series.num_not_finite(), 4);
  EXPECT_EQ(series.lowest()->y, 1);
  EXPECT_EQ(series.highest()->y, 3);
  EXPECT_EQ(series.first_step(), 0);
  EXPECT_EQ(series.last_step(), 6);
}

TEST(Series, KnowsItsPositiveValues) {
  plot::Series series;
  EXPECT_FALSE(series.lowest_positive());
  for (const double value : {0.0, 2.0, 1e-7, -3.0, 5.0, double(INFINITY)}) {
    series.add(0, value);
  }
  EXPECT_EQ(series.lowest_positive(), 1e-7);
  EXPECT_EQ(series.num_positive(), 3);
}

TEST(Series, NothingFiniteMeansNoLine) {
  plot::Series series;
  EXPECT_TRUE(series.is_empty());
  for (int step = 0; step < 5000; ++step) series.add(step, NAN);
  EXPECT_TRUE(series.lines().empty());
  EXPECT_TRUE(series.smooth_lines().empty());
  EXPECT_FALSE(series.lowest());
  EXPECT_FALSE(series.is_empty());
}

TEST(Series, SmoothLinesTakeAwayNoiseAndDoNotLag) {
  plot::Series noisy;
  for (int step = 0; step < 2000; ++step) {
    noisy.add(step, 10 - 0.005 * step + (step % 2 == 0 ? 1 : -1));
  }
  const auto lines = noisy.smooth_lines();
  ASSERT_EQ(lines.size(), 1U);
  for (const plot::Point& point : lines[0]) {
    const bool is_near_an_end = point.x < 200 || point.x > 1800;
    EXPECT_NEAR(point.y, 10 - 0.005 * point.x, is_near_an_end ? 0.3 : 0.05);
  }
}

TEST(Series, HugeValuesDoNotOverflow) {
  plot::Series series;
  for (int step = 0; step < 3000; ++step) {
    series.add(step, step % 2 == 0 ? 1.7e308 : -1e100);
  }
  EXPECT_EQ(series.num_not_finite(), 1500);
  for (const auto& line : series.smooth_lines()) {
    for (const plot::Point& point : line) EXPECT_TRUE(std::isfinite(point.y));
  }
}

}  // namespace
}  // namespace lockstep
