#include "lockstep/fingerprint.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep {
namespace {

TEST(Fingerprint, EqualBitsGiveEqualNumbers) {
  const auto a = torch::arange(100000, torch::kFloat);
  EXPECT_EQ(fingerprint({a}), fingerprint({a.clone()}));
  EXPECT_EQ(fingerprint({a.view({100, 1000}).t()}),
            fingerprint({a.view({100, 1000}).t().contiguous()}));
}

TEST(Fingerprint, OneBitChangesIt) {
  const auto a = torch::zeros({100001}, torch::kByte);
  for (const int64_t at : {0, 50000, 100000}) {
    auto b = a.clone();
    b[at] = 1;
    EXPECT_NE(fingerprint({a}), fingerprint({b})) << at;
  }
}

TEST(Fingerprint, OrderAndLengthMatter) {
  const auto a = torch::ones({3});
  const auto b = torch::zeros({3});
  EXPECT_NE(fingerprint({a, b}), fingerprint({b, a}));
  EXPECT_NE(fingerprint({b}), fingerprint({torch::zeros({4})}));
  EXPECT_NE(fingerprint({}), fingerprint({b}));
}

TEST(Fingerprint, DoesNotDependOnThreads) {
  const auto a = torch::randn({1 << 20});
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const uint64_t one = fingerprint({a});
  at::set_num_threads(4);
  EXPECT_EQ(fingerprint({a}), one);
  at::set_num_threads(before);
}

}  // namespace
}  // namespace lockstep
