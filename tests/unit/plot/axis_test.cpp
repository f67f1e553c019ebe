#include "lockstep/plot/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

std::string labels(const plot::Axis& axis) {
  std::string text;
  for (const plot::Tick& tick : axis.ticks) {
    text += (text.empty() ? "" : " ") + tick.label;
  }
  return text;
}

std::string linear_labels(double low, double high) {
  return labels(plot::linear_axis({.low = low, .high = high, .margin = 0}));
}

std::string logarithmic_labels(double low, double high) {
  return labels(
      plot::logarithmic_axis({.low = low, .high = high, .margin = 0}));
}

TEST(Axis, LinearTicksAreRound) {
  EXPECT_EQ(linear_labels(0, 1), "0 0.2 0.4 0.6 0.8 1.0");
  EXPECT_EQ(linear_labels(0.13, 0.47), "0.2 0.3 0.4");
  EXPECT_EQ(linear_labels(-3, 2), "-3 -2 -1 0 1 2");
  EXPECT_EQ(linear_labels(0, 3e-4),
            "0 5e-5 1.0e-4 1.5e-4 2.0e-4 2.5e-4 3.0e-4");
  EXPECT_EQ(linear_labels(0, 20000), "0 5k 10k 15k 20k");
  EXPECT_EQ(linear_labels(0, 3e6), "0 0.5M 1.0M 1.5M 2.0M 2.5M 3.0M");
  EXPECT_EQ(linear_labels(0, 5e20), "0 1e20 2e20 3e20 4e20 5e20");
}

TEST(Axis, WholeNumbersHaveNoTicksBetweenThem) {
  EXPECT_EQ(labels(plot::linear_axis(
                {.low = 1, .high = 3, .smallest_step = 1, .margin = 0})),
            "1 2 3");
}

TEST(Axis, EqualNumbersGetRoomAroundThem) {
  const plot::Axis axis = plot::linear_axis({.low = 5, .high = 5});
  EXPECT_LT(axis.low, 5);
  EXPECT_GT(axis.high, 5);
  EXPECT_NEAR(axis.position(5), 0.5, 1e-9);
  const plot::Axis zero = plot::linear_axis({.low = 0, .high = 0});
  EXPECT_EQ(zero.low, 0);
  EXPECT_GT(zero.high, 0);
}

TEST(Axis, WithoutNegativeNumbersItDoesNotBeginBelowZero) {
  EXPECT_EQ(plot::linear_axis({.low = 0.01, .high = 10}).low, 0);
  EXPECT_LT(plot::linear_axis({.low = -0.01, .high = 10}).low, -0.01);
}

TEST(Axis, LogarithmicTicksArePowersOfTen) {
  EXPECT_EQ(logarithmic_labels(0.001, 1), "0.001 0.01 0.1 1");
  EXPECT_EQ(logarithmic_labels(1e-6, 1e-2), "1e-6 1e-5 1e-4 0.001 0.01");
  EXPECT_EQ(logarithmic_labels(0.1, 10), "0.1 0.2 0.5 1 2 5 10");
  EXPECT_EQ(logarithmic_labels(1e-6, 1e6), "1e-6 1e-4 0.01 1 100 1e4 1e6");
}

TEST(Axis, PositionsFollowTheScale) {
  const plot::Axis linear =
      plot::linear_axis({.low = 10, .high = 20, .margin = 0});
  EXPECT_DOUBLE_EQ(linear.position(10), 0);
  EXPECT_DOUBLE_EQ(linear.position(15), 0.5);
  EXPECT_DOUBLE_EQ(linear.position(20), 1);
  const plot::Axis decades =
      plot::logarithmic_axis({.low = 0.01, .high = 100, .margin = 0});
  EXPECT_NEAR(decades.position(0.01), 0, 1e-12);
  EXPECT_NEAR(decades.position(1), 0.5, 1e-12);
  EXPECT_NEAR(decades.position(100), 1, 1e-12);
}

// Whatever the range: a few ticks, in order, inside.
TEST(Axis, WhatALogarithmCannotShowStandsAtTheLowerEdge) {
  const plot::Axis axis = plot::logarithmic_axis({.low = 1e-3, .high = 10});
  EXPECT_EQ(axis.position(0), 0);
  EXPECT_EQ(axis.position(-5), 0);
  EXPECT_GT(axis.position(1e-3), 0);
}

TEST(Axis, AnyRangeHasAFewTicks) {
  const double one_more = std::nextafter(1e9, 2e9);
  for (const auto& [low, high] :
       {std::pair(0.0, 1e-100), std::pair(-1e100, 1e100), std::pair(1e9, 1e9),
        std::pair(1e9, one_more), std::pair(-1e-100, 0.0),
        std::pair(1e-100, 1e100), std::pair(0.999, 1.001),
        std::pair(1e15, 1e15 + 2)}) {
    std::vector<plot::Axis> axes = {
        plot::linear_axis({.low = low, .high = high})};
    if (low > 0)
      axes.push_back(plot::logarithmic_axis({.low = low, .high = high}));
    for (const plot::Axis& axis : axes) {
      EXPECT_GE(axis.ticks.size(), 1U) << low << " " << high;
      EXPECT_LE(axis.ticks.size(), 14U) << low << " " << high;
      EXPECT_LT(axis.low, axis.high);
      for (const plot::Tick& tick : axis.ticks) {
        EXPECT_GE(axis.position(tick.value), -1e-6) << low << " " << high;
        EXPECT_LE(axis.position(tick.value), 1 + 1e-6) << low << " " << high;
        EXPECT_LE(tick.label.size(), 12U) << tick.label;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
