#include "lockstep/ema.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using torch::Tensor;

Tensor parameter_of(double value) {
  return torch::full({3}, value).requires_grad_();
}

float value_of(const Tensor& tensor) { return tensor[0].item<float>(); }

TEST(Ema, MovesTowardsTheParameters) {
  const auto p = parameter_of(0);
  Ema ema({p}, {.decay = 0.75});
  p.detach().fill_(1);
  ema.update();
  EXPECT_EQ(value_of(ema.averages()[0]), 0.25);
  ema.update();
  EXPECT_EQ(value_of(ema.averages()[0]), 0.4375);
  EXPECT_EQ(ema.num_updates(), 2);
  EXPECT_FALSE(ema.averages()[0].requires_grad());
}

TEST(Ema, WarmUpFollowsLitEma) {
  const auto p = parameter_of(0);
  Ema ema({p}, {.decay = 0.2, .warmup = true});
  p.detach().fill_(1);
  ema.update();  // min(0.2, 2/11)
  EXPECT_FLOAT_EQ(value_of(ema.averages()[0]), 1 - 2.0 / 11);
  ema.update();  // min(0.2, 3/12)
  EXPECT_FLOAT_EQ(value_of(ema.averages()[0]), 1 - 2.0 / 11 * 0.2);
}

TEST(Ema, CopiesUntilUpdateAfter) {
  const auto p = parameter_of(0);
  Ema ema({p}, {.decay = 0.5, .update_after = 2});
  for (const double value : {3.0, 7.0}) {
    p.detach().fill_(value);
    ema.update();
    EXPECT_EQ(value_of(ema.averages()[0]), value);
  }
  p.detach().fill_(9);
  ema.update();
  EXPECT_EQ(value_of(ema.averages()[0]), 8);
}

TEST(Ema, TakesMixedTypesAndCopiesIntegers) {
  const auto counter = torch::tensor(int64_t{5});
  const auto wide = torch::zeros({2}, torch::kDouble);
  const auto p = parameter_of(0);
  Ema ema({p, counter, wide}, {.decay = 0.5});
  counter.fill_(8);
  wide.fill_(1);
  p.detach().fill_(1);
  ema.update();
  EXPECT_EQ(ema.averages()[1].item<int64_t>(), 8);
  EXPECT_EQ(ema.averages()[2][1].item<double>(), 0.5);
  EXPECT_EQ(value_of(ema.averages()[0]), 0.5);
}

TEST(Ema, SeveralFollowTheSameParameters) {
  const auto p = parameter_of(0);
  Ema slow({p}, {.decay = 0.75});
  Ema fast({p}, {.decay = 0.5});
  p.detach().fill_(1);
  slow.update();
  fast.update();
  EXPECT_EQ(value_of(slow.averages()[0]), 0.25);
  EXPECT_EQ(value_of(fast.averages()[0]), 0.5);
  {
    const EmaScope outer(slow);
    EXPECT_EQ(value_of(p), 0.25);
    {
      const EmaScope inner(fast);
      EXPECT_EQ(value_of(p), 0.5);
    }
    EXPECT_EQ(value_of(p), 0.25);
  }
  EXPECT_EQ(value_of(p), 1);
}

TEST(EmaScope, GivesTheParametersTheirBitsBackInTheSameStorage) {
  torch::manual_seed(3);
  const auto p = torch::randn({1000}).requires_grad_();
  const auto before = p.detach().clone();
  const void* const storage = p.const_data_ptr();
  const Ema ema({p});
  p.detach().mul_(1.37);
  const auto trained = p.detach().clone();
  try {
    const EmaScope scope(ema);
    EXPECT_TRUE(torch::equal(p, before));
    EXPECT_EQ(p.const_data_ptr(), storage);
    EXPECT_TRUE(torch::equal(ema.averages()[0], before));
    throw std::runtime_error("evaluation failed");
  } catch (const std::runtime_error&) {
    EXPECT_TRUE(torch::equal(p, trained));
    EXPECT_EQ(p.const_data_ptr(), storage);
  }
}

TEST(Ema, StateGoesThroughACheckpoint) {
  const auto p = parameter_of(0);
  Ema ema({p}, {.decay = 0.9, .warmup = true});
  p.detach().fill_(1);
  ema.update();
  Ema loaded({p}, {.decay = 0.9, .warmup = true});
  loaded.load(ema.state());
  ema.update();
  loaded.update();
  EXPECT_TRUE(torch::equal(ema.averages()[0], loaded.averages()[0]));
  EXPECT_EQ(loaded.num_updates(), 2);
  EXPECT_THROW(loaded.load({}), ConfigError);
  EXPECT_THROW(loaded.load({.averages = {torch::zeros({4})}}), ConfigError);
  EXPECT_THROW(Ema({p}, {.decay = 1.5}), ConfigError);
}

}  // namespace
}  // namespace lockstep
