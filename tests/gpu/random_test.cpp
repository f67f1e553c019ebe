// Random draws on a GPU equal those on the CPU, bit for bit.
#include "lockstep/random.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/tensor/device.h"

namespace lockstep {
namespace {

at::Tensor seeds_of(int64_t num_samples) {
  std::vector<int64_t> seeds;
  for (int64_t index = 0; index < num_samples; ++index) {
    seeds.push_back(static_cast<int64_t>(sample_seed(1, 2, index)));
  }
  return torch::tensor(seeds, torch::kLong);
}

struct DrawCase {
  int64_t num_samples;
  std::vector<int64_t> shape;
};

// Odd sizes end inside a block; the large ones take several rounds of the
// kernel's loop.
const std::vector<DrawCase> kDrawCases = {
    {1, {}},           {1, {1}},       {3, {2}},
    {5, {3, 1}},       {4, {1001}},    {257, {5}},
    {64, {3, 67, 67}}, {1, {4194307}}, {16, {4, 256, 256}},
    {0, {3}},          {3, {0}}};

// Compares what `draw` gives on both devices.
template <typename Draw>
void expect_equal_bits(const char* what, Draw draw) {
  const auto device = tensor::take_device(DeviceChoice::kCuda, 0, {});
  for (const DrawCase& c : kDrawCases) {
    const at::Tensor seeds = seeds_of(c.num_samples);
    SampleRandom on_cpu(seeds);
    SampleRandom on_gpu(seeds.to(device));
    for (int call = 0; call < 2; ++call) {
      const at::Tensor expected = draw(on_cpu, c.shape);
      const at::Tensor drawn = draw(on_gpu, c.shape);
      EXPECT_EQ(drawn.device(), device);
      EXPECT_TRUE(torch::equal(drawn.cpu(), expected))
          << what << " " << c.num_samples << " x " << c.shape << " call "
          << call;
    }
  }
}

TEST(GpuRandom, UniformsEqualThoseOfTheCpu) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    expect_equal_bits(c10::toString(dtype),
                      [&](SampleRandom& random, const auto& shape) {
                        return random.uniform(shape, dtype);
                      });
  }
}

TEST(GpuRandom, NormalsEqualThoseOfTheCpu) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    expect_equal_bits(c10::toString(dtype),
                      [&](SampleRandom& random, const auto& shape) {
                        return random.normal(shape, dtype);
                      });
  }
}

TEST(GpuRandom, IntegersEqualThoseOfTheCpu) {
  // A quarter of the draws below 3 * 2^61 are tried again.
  for (const int64_t below : {int64_t{1}, int64_t{1000}, int64_t{3} << 61}) {
    expect_equal_bits("integers", [&](SampleRandom& random, const auto& shape) {
      return random.integers(below, shape);
    });
  }
}

}  // namespace
}  // namespace lockstep
