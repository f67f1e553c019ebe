#include "lockstep/plot/plot.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/plot/raster.h"
#include "lockstep/plot/svg.h"

namespace lockstep {
namespace {

bool has_text(const plot::Drawing& drawing, const std::string& text) {
  return plot::to_svg(drawing).find(">" + text + "<") != std::string::npos;
}

plot::RunCurves falling_loss(int steps) {
  plot::RunCurves curves{.title = "tiny"};
  for (int step = 1; step <= steps; ++step) {
    curves.train_loss.add(step, 1 + 1.0 / step);
    curves.learning_rate.add(step, 1e-3);
    curves.samples_per_second.add(step, 1000);
    if (step % 10 == 0) curves.validation_loss.add(step, 2 - 0.001 * step);
  }
  return curves;
}

TEST(Plot, PanelsHaveTitlesNumbersAndLegend) {
  const plot::Drawing drawing = plot::draw_run(falling_loss(100));
  for (const char* text :
       {"tiny", "step 100", "Loss", "Learning rate", "Samples per second",
        "train 1.01", "validation 1.9", "lowest 1.9 at step 100", "now 0.001",
        "now 1000", "step", "20", "1.4"}) {
    EXPECT_TRUE(has_text(drawing, text)) << text;
  }
  EXPECT_FALSE(has_text(drawing, "Gradient norm"));
}

TEST(Plot, TheLossIsLogarithmicWhenItSpansTwoDecades) {
  plot::RunCurves wide;
  plot::RunCurves narrow;
  for (int step = 0; step <= 10; ++step) {
    wide.train_loss.add(step, 300 * std::pow(0.1, step));
    narrow.train_loss.add(step, 3 + step);
  }
  EXPECT_TRUE(has_text(plot::draw_run(wide), "1e-4"));
  EXPECT_FALSE(has_text(plot::draw_run(narrow), "100"));
}

// As a loss that underflows now and then.
TEST(Plot, ALossThatIsSometimesZeroIsLogarithmicToo) {
  plot::RunCurves curves;
  plot::RunCurves mostly_zero;
  for (int step = 0; step < 20; ++step) {
    const double value = 300 * std::pow(0.1, 0.5 * step);
    curves.train_loss.add(step, step % 4 == 3 ? 0 : value);
    mostly_zero.train_loss.add(step, step % 4 == 0 ? value : 0);
  }
  curves.validation_loss.add(19, 0);
  EXPECT_TRUE(has_text(plot::draw_run(curves), "1e-4"));
  EXPECT_TRUE(has_text(plot::draw_run(curves), "lowest 0 at step 19"));
  EXPECT_FALSE(has_text(plot::draw_run(mostly_zero), "1e-4"));
  EXPECT_TRUE(has_text(plot::draw_run(mostly_zero), "0"));
}

TEST(Plot, ALossThatIsReallyNegativeIsLinear) {
  plot::RunCurves rounded;
  plot::RunCurves negative;
  for (int step = 0; step < 20; ++step) {
    const double value = 300 * std::pow(0.1, 0.5 * step);
    rounded.train_loss.add(step, step == 19 ? -1e-9 : value);
    negative.train_loss.add(step, step == 19 ? -100 : value);
  }
  EXPECT_TRUE(has_text(plot::draw_run(rounded), "1e-4"));
  EXPECT_TRUE(has_text(plot::draw_run(negative), "-100"));
}

TEST(Plot, ValuesThatAreNotFiniteAreCounted) {
  plot::RunCurves curves = falling_loss(50);
  curves.train_loss.add(51, NAN);
  EXPECT_TRUE(has_text(plot::draw_run(curves), "1 value is not finite"));
  curves.train_loss.add(52, INFINITY);
  EXPECT_TRUE(has_text(plot::draw_run(curves), "2 values are not finite"));
}

TEST(Plot, ALongTitleIsCut) {
  plot::RunCurves curves = falling_loss(2);
  curves.title = std::string(100'000, 'x');
  const std::string svg = plot::to_svg(plot::draw_run(curves));
  EXPECT_NE(svg.find("xxx...<"), std::string::npos);
  EXPECT_LT(svg.size(), 20'000U);
}

// Odd values in every curve, for 0, 1, 2, 3 and many steps.
TEST(Plot, AnyValuesCanBeDrawn) {
  for (const double value :
       {0.0, -0.0, 1.0, -5.0, 1e-320, 1e-99, 1e99, -1e100, 1.7e308, double(NAN),
        double(INFINITY), double(-INFINITY)}) {
    for (const int steps : {0, 1, 2, 3, 50, 2500}) {
      plot::RunCurves curves{.title = "odd \xff"};
      for (int step = 0; step < steps; ++step) {
        for (plot::Series* series :
             {&curves.train_loss, &curves.validation_loss,
              &curves.learning_rate, &curves.samples_per_second,
              &curves.gradient_norm}) {
          series->add(1e12 + step, step % 3 == 1 ? 1.5 : value);
        }
      }
      const plot::Drawing drawing = plot::draw_run(curves);
      const std::string svg = plot::to_svg(drawing);
      EXPECT_EQ(svg.find("nan"), std::string::npos) << value << " " << steps;
      EXPECT_EQ(svg.find("inf,"), std::string::npos) << value << " " << steps;
      if (steps <= 3) {
        EXPECT_EQ(plot::to_pixels(drawing).size(), size_t{1200 * 800 * 3});
      }
    }
  }
}

TEST(Plot, CurvesArePixels) {
  const auto with = plot::to_pixels(plot::draw_run(falling_loss(100)));
  plot::RunCurves other = falling_loss(99);
  other.train_loss.add(100, 1.9);
  EXPECT_NE(with, plot::to_pixels(plot::draw_run(other)));
}

}  // namespace
}  // namespace lockstep
