// Which algorithm is chosen for a product, without a GPU.
#include "lockstep/kernels/product_algorithms.h"

#include <gtest/gtest.h>

#include <map>

namespace lockstep::kernels {
namespace {

constexpr LinearProductShape kShape{.rows = 64, .in = 384, .out = 1152};

ProductAlgorithm algorithm(uint64_t number) { return {.words = {number}}; }

// A GPU with some algorithms, whose times are known.
struct FakeGpu {
  std::map<uint64_t, double> times = {{1, 10.0}, {2, 8.0}, {3, 9.0}};
  bool accepts = true;
  int num_timed = 0;
  int num_suggested = 0;

  ProductAlgorithms::Backend backend() {
    return {.suggest =
                [this] {
                  ++num_suggested;
                  std::vector<ProductAlgorithm> all;
                  for (const auto& [number, time] : times) {
                    all.push_back(algorithm(number));
                  }
                  return all;
                },
            .time =
                [this](const ProductAlgorithm& one) {
                  ++num_timed;
                  return times.at(one.words[0]);
                },
            .accepts = [this](const ProductAlgorithm&) { return accepts; }};
  }
};

TEST(ProductAlgorithms, FirstSuggestionWithoutTiming) {
  FakeGpu gpu;
  ProductAlgorithms algorithms("H200");
  EXPECT_EQ(algorithms.find(kShape, gpu.backend()), algorithm(1));
  EXPECT_EQ(gpu.num_timed, 0);
  EXPECT_EQ(algorithms.text(), "H200\n");
}

TEST(ProductAlgorithms, FastestIsTimedOnce) {
  FakeGpu gpu;
  ProductAlgorithms algorithms("H200");
  algorithms.start_timing();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(algorithms.find(kShape, gpu.backend()), algorithm(2));
  }
  EXPECT_EQ(gpu.num_timed, 3);
  EXPECT_EQ(gpu.num_suggested, 1);
}

TEST(ProductAlgorithms, LittleGainsAreNoise) {
  FakeGpu gpu{.times = {{1, 10.0}, {2, 9.9}}};
  ProductAlgorithms algorithms("H200");
  algorithms.start_timing();
  EXPECT_EQ(algorithms.find(kShape, gpu.backend()), algorithm(1));
}

TEST(ProductAlgorithms, FailingOnesAreNotChosen) {
  FakeGpu gpu{.times = {{1, -1.0}, {2, 5.0}}};
  ProductAlgorithms algorithms("H200");
  algorithms.start_timing();
  EXPECT_EQ(algorithms.find(kShape, gpu.backend()), algorithm(2));
  FakeGpu broken{.times = {{1, -1.0}}};
  LinearProductShape other = kShape;
  other.rows = 65;
  EXPECT_EQ(algorithms.find(other, broken.backend()), std::nullopt);
  FakeGpu none{.times = {}};
  other.rows = 66;
  EXPECT_EQ(algorithms.find(other, none.backend()), std::nullopt);
}

TEST(ProductAlgorithms, ShapesAreToldApart) {
  FakeGpu gpu;
  ProductAlgorithms algorithms("H200");
  algorithms.find(kShape, gpu.backend());
  std::vector<LinearProductShape> others(6, kShape);
  others[0].kind = LinearProductKind::kInputGradient;
  others[1].rows = 1;
  others[2].in = 1;
  others[3].out = 1;
  others[4].has_bias = true;
  others[5].type = ElementType::kFloat16;
  for (const LinearProductShape& other : others) {
    algorithms.find(other, gpu.backend());
  }
  EXPECT_EQ(gpu.num_suggested, 7);
}

TEST(ProductAlgorithms, OthersTakeWhatWasTimed) {
  FakeGpu gpu;
  ProductAlgorithms timed("H200");
  timed.start_timing();
  timed.find(kShape, gpu.backend());
  ProductAlgorithms other("H200");
  FakeGpu others;
  EXPECT_EQ(other.find(kShape, others.backend()), algorithm(1));
  other.take(timed.text());
  EXPECT_EQ(other.find(kShape, others.backend()), algorithm(2));
  EXPECT_EQ(others.num_timed, 0);
  EXPECT_EQ(other.text(), timed.text());
}

TEST(ProductAlgorithms, NothingIsTakenFromAnotherMachine) {
  FakeGpu gpu;
  ProductAlgorithms timed("H200");
  timed.start_timing();
  timed.find(kShape, gpu.backend());
  ProductAlgorithms other("A100");
  other.take(timed.text());
  EXPECT_EQ(other.find(kShape, gpu.backend()), algorithm(1));
}

TEST(ProductAlgorithms, DamagedTextIsNotTaken) {
  FakeGpu gpu;
  for (const char* text :
       {"", "H200", "H200\n0 64 384 1152 0 2 1 2 3", "H200\nnonsense\n",
        "H200\n0 64 384 1152 0 2 2 0 0 0 0 0 0 0 9\n"}) {
    ProductAlgorithms algorithms("H200");
    algorithms.take(text);
    EXPECT_EQ(algorithms.find(kShape, gpu.backend()), algorithm(1)) << text;
  }
}

// A checkpoint may name an algorithm that the GPU refuses.
TEST(ProductAlgorithms, RefusedOnesAreReplaced) {
  FakeGpu gpu{.accepts = false};
  ProductAlgorithms timed("H200");
  timed.start_timing();
  timed.find(kShape, gpu.backend());
  ProductAlgorithms other("H200");
  other.take(timed.text());
  EXPECT_EQ(other.find(kShape, gpu.backend()), algorithm(1));
}

}  // namespace
}  // namespace lockstep::kernels
