// Draws equal those of an independent implementation in numpy, bit for bit.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <numeric>

#include "lockstep/random.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

void write_tensor(const testing::TempDir& folder, const char* name,
                  const at::Tensor& values) {
  folder.write(name, {static_cast<const char*>(values.const_data_ptr()),
                      values.nbytes()});
}

template <typename Value>
void write_values(const testing::TempDir& folder, const char* name,
                  const std::vector<Value>& values) {
  folder.write(name, {reinterpret_cast<const char*>(values.data()),
                      values.size() * sizeof(Value)});
}

template <typename Draw>
auto repeat(int count, Draw draw) {
  std::vector<decltype(draw())> values;
  for (int i = 0; i < count; ++i) values.push_back(draw());
  return values;
}

void write_batch_draws(const testing::TempDir& folder) {
  std::vector<int64_t> seeds;
  for (int64_t index = 0; index < 100; ++index) {
    seeds.push_back(static_cast<int64_t>(sample_seed(7, 3, index)));
  }
  SampleRandom batch(torch::tensor(seeds));
  write_tensor(folder, "uniform_float", batch.uniform({5, 7}));
  write_tensor(folder, "uniform_double", batch.uniform({5, 7}, at::kDouble));
  write_tensor(folder, "normal_float", batch.normal({5, 7}));
  write_tensor(folder, "normal_double", batch.normal({5, 7}, at::kDouble));
  write_tensor(folder, "integers", batch.integers(1000, {5, 7}));
  write_tensor(folder, "integers_with_retries",
               batch.integers(int64_t{3} << 61, {5, 7}));
}

void write_host_draws(const testing::TempDir& folder) {
  RandomStream host(sample_seed(7, 3, 0), 5);
  write_values(folder, "host_bits", repeat(333, [&] { return host.bits(); }));
  write_values(folder, "host_uniform",
               repeat(1000, [&] { return host.uniform(); }));
  write_values(folder, "host_uniform_float",
               repeat(1000, [&] { return host.uniform_float(); }));
  write_values(folder, "host_normal",
               repeat(1000, [&] { return host.normal(); }));
  write_values(folder, "host_integer",
               repeat(1000, [&] { return host.integer(int64_t{3} << 61); }));
  std::vector<int64_t> order(1000);
  std::iota(order.begin(), order.end(), 0);
  host.shuffle(order);
  write_values(folder, "host_shuffle", order);
}

TEST(RandomParity, EveryKindOfDrawEqualsThatOfNumpy) {
  const testing::TempDir folder;
  write_batch_draws(folder);
  write_host_draws(folder);
  const auto python = testing::run(
      {TORCH_PYTHON, PYTHON_SCRIPTS "/random_check.py", folder.path()});
  EXPECT_EQ(python.exit_code, 0) << python.err;
  EXPECT_EQ(python.out, "26333 values are equal\n");
}

}  // namespace
}  // namespace lockstep
