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
       {"tiny", "step 100", "Loss", "Learning rate", "Speed (samples/s)",
        "train 1.01", "validation 1.9", "lowest 1.9 at step 100", "now 0.001",
        "now 1000", "step", "20", "1.4"}) {
    EXPECT_TRUE(has_text(drawing, text)) << text;
  }
  for (const char* text :
       {"Gradient norm", "Peak memory (GiB)", "Terms of the loss"}) {
    EXPECT_FALSE(has_text(drawing, text)) << text;
  }
}

TEST(Plot, TheMetricThatSelectsTheBestModelHasItsPanel) {
  plot::RunCurves curves = falling_loss(30);
  curves.metric.name = "accuracy";
  for (const double value : {0.25, 0.75, 0.5}) {
    curves.metric.series.add(40 * value, value);
  }
  curves.better = plot::Direction::kHigher;
  plot::Drawing drawing = plot::draw_run(curves);
  EXPECT_TRUE(has_text(drawing, "accuracy"));
  EXPECT_TRUE(has_text(drawing, "validation 0.5"));
  EXPECT_TRUE(has_text(drawing, "best 0.75 at step 30"));
  curves.better = plot::Direction::kLower;
  EXPECT_TRUE(has_text(plot::draw_run(curves), "best 0.25 at step 10"));
  curves.better = plot::Direction::kUnknown;
  EXPECT_FALSE(has_text(plot::draw_run(curves), "best 0.25 at step 10"));
}

TEST(Plot, TermsOfTheLossShareAPanelOfTheirOwn) {
  plot::RunCurves curves = falling_loss(30);
  for (const char* name : {"pose_loss", "gripper_loss"}) {
    curves.loss_terms.push_back({.name = name});
    curves.loss_terms.back().series.add(1, 0.125);
  }
  curves.peak_memory_gib.add(1, 3.5);
  const plot::Drawing drawing = plot::draw_run(curves);
  for (const char* text :
       {"Terms of the loss", "pose_loss 0.125", "gripper_loss 0.125",
        "Peak memory (GiB)", "now 3.5"}) {
    EXPECT_TRUE(has_text(drawing, text)) << text;
  }
}

// The rightmost pixel that a text reaches.
double right_end(const plot::Font& font, const plot::Label& label) {
  const double width = font.width(label.text, label.size);
  switch (label.align) {
    case plot::Align::kLeft: return label.at.x + width;
    case plot::Align::kCenter: return label.at.x + width / 2;
    case plot::Align::kRight: return label.at.x;
  }
  return 0;
}

TEST(Plot, NoTextIsCutAtTheEdgeAndLegendsWrap) {
  plot::RunCurves curves = falling_loss(100);
  curves.metric = {.name = "mean_iou_of_all_classes"};
  curves.metric.series.add(90'000'000, 0.123456);
  curves.better = plot::Direction::kHigher;
  for (int i = 0; i < 7; ++i) {
    curves.loss_terms.push_back({.name = "a_long_name_" + std::to_string(i)});
    curves.loss_terms.back().series.add(1, 0.12345678);
  }
  curves.train_loss.add(90'000'001, NAN);
  const plot::Drawing drawing = plot::draw_run(curves);
  const plot::Font font;
  EXPECT_TRUE(has_text(drawing, "a_long_name_6 0.1235"));
  for (const plot::Shape& shape : drawing.shapes) {
    if (const auto* label = std::get_if<plot::Label>(&shape)) {
      EXPECT_LT(right_end(font, *label), drawing.width) << label->text;
      EXPECT_LT(label->at.y, drawing.height) << label->text;
    }
  }
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
              &curves.gradient_norm, &curves.metric.series,
              &curves.peak_memory_gib}) {
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
