#include "lockstep/plot/comparison.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/plot/raster.h"
#include "lockstep/plot/svg.h"

namespace lockstep {
namespace {

plot::Comparison compared(size_t num_runs, size_t num_metrics) {
  plot::Comparison comparison{.title = "compared"};
  for (size_t run = 0; run < num_runs; ++run) {
    comparison.runs.push_back("runs/number_" + std::to_string(run));
  }
  for (size_t metric = 0; metric < num_metrics; ++metric) {
    plot::ComparedMetric& one = comparison.metrics.emplace_back();
    one.title = "metric " + std::to_string(metric);
    for (size_t run = 0; run < num_runs; ++run) {
      one.runs.emplace_back();
      for (int step = 0; step < 50; ++step) {
        one.runs.back().add(step, double(run) + step * double(metric));
      }
    }
  }
  return comparison;
}

size_t num_found(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Comparison, RunsAreNamedOnceAndMetricsHavePanels) {
  const std::string svg = plot::to_svg(plot::draw_comparison(compared(3, 2)));
  for (const char* text : {">compared<", ">runs/number_0<", ">runs/number_2<",
                           ">metric 0<", ">metric 1<"}) {
    EXPECT_EQ(num_found(svg, text), 1U) << text;
  }
  EXPECT_EQ(num_found(svg, ">step<"), 2U);
}

TEST(Comparison, EveryRunHasItsOwnStroke) {
  const std::string svg =
      plot::to_svg(plot::draw_comparison(compared(plot::kMostRuns, 1)));
  // Seven colours; a dashed line is many short ones.
  for (const char* color : {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                            "#e69f00", "#56b4e9", "#000000"}) {
    EXPECT_GT(num_found(svg, color), 10U) << color;
  }
}

TEST(Comparison, ItIsAsHighAsItsPanelsNeed) {
  int last = 0;
  for (const size_t metrics : {1, 3, 5}) {
    const plot::Drawing drawing = plot::draw_comparison(compared(2, metrics));
    EXPECT_EQ(drawing.width, 1200);
    EXPECT_GT(drawing.height, last + 200);
    last = drawing.height;
  }
}

TEST(Comparison, ARunWithoutAMetricIsLeftOut) {
  plot::Comparison comparison = compared(2, 1);
  comparison.metrics[0].runs[1] = {};
  EXPECT_NO_THROW(plot::to_png(plot::draw_comparison(comparison)));
  comparison.metrics[0].runs[0] = {};
  const std::string svg = plot::to_svg(plot::draw_comparison(comparison));
  EXPECT_EQ(num_found(svg, ">no finite values<"), 1U);
}

TEST(Comparison, MoreRunsThanCanBeToldApartAreABug) {
  EXPECT_THROW(plot::draw_comparison(compared(plot::kMostRuns + 1, 1)),
               InternalError);
}

}  // namespace
}  // namespace lockstep
