#include "lockstep/datasets/images/shapes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Shapes, HasAllClassesEquallyOften) {
  const images::Shapes shapes({.num_samples = 2000, .side = 4});
  std::array<int, images::Shapes::kNumClasses> counts = {};
  for (int64_t i = 0; i < shapes.size(); ++i) {
    ++counts.at(static_cast<size_t>(shapes.get(i, 0)[1].item<int64_t>()));
  }
  for (const int count : counts) EXPECT_NEAR(count, 200, 60);
}

TEST(Shapes, DependOnSeedAndNumberAlone) {
  const images::Shapes shapes({.side = 32, .seed = 1});
  const images::Shapes others({.side = 32, .seed = 2});
  EXPECT_TRUE(at::equal(shapes.get(5, 0)[0], shapes.get(5, 9)[0]));
  EXPECT_FALSE(at::equal(shapes.get(5, 0)[0], shapes.get(6, 0)[0]));
  EXPECT_FALSE(at::equal(shapes.get(5, 0)[0], others.get(5, 0)[0]));
}

// The nearest of 1,500 other images, by how far pixels are from the corners'
// colour, has the same shape far more often than the tenth part of chance.
TEST(Shapes, LookDifferentByClass) {
  const images::Shapes shapes({.num_samples = 1800, .side = 16});
  std::vector<at::Tensor> outlines;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < shapes.size(); ++i) {
    const Sample sample = shapes.get(i, 0);
    const at::Tensor image = sample[0].to(at::kFloat);
    // A row's background is the colour of its first pixel.
    at::Tensor outline = (image - image.slice(2, 0, 1)).abs().sum(0).flatten();
    outlines.push_back(outline / outline.norm().clamp_min(1));
    labels.push_back(sample[1].item<int64_t>());
  }
  const at::Tensor all = at::stack(outlines);
  const at::Tensor near =
      at::mm(all.slice(0, 1500), all.slice(0, 0, 1500).t()).argmax(1);
  int right = 0;
  for (int64_t i = 0; i < near.size(0); ++i) {
    const auto found = static_cast<size_t>(near[i].item<int64_t>());
    if (labels[found] == labels[static_cast<size_t>(1500 + i)]) ++right;
  }
  EXPECT_GT(right, 210);  // Out of 300.
}

}  // namespace
}  // namespace lockstep
