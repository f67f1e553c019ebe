#include "lockstep/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr std::array kKinds = {"adamw", "adam", "sgd"};

Tensor parameter(torch::IntArrayRef shape, torch::ScalarType dtype) {
  return torch::ones(shape, dtype).requires_grad_();
}

std::unique_ptr<Optimizer> make(const std::string& kind,
                                std::vector<Tensor> parameters) {
  return make_optimizer(
      kind, {{.parameters = std::move(parameters)}},
      {.lr = 0.1, .weight_decay = 0.01, .momentum = 0.9, .nesterov = true});
}

Tensor flag(float value) { return torch::tensor(value); }

// All bits of an optimizer and its parameter.
std::vector<Tensor> snapshot(const Optimizer& optimizer, const Tensor& p) {
  std::vector<Tensor> tensors = {p.detach().clone()};
  for (const auto& named : optimizer.state().parameters) {
    for (const auto& [name, tensor] : named) tensors.push_back(tensor.clone());
  }
  return tensors;
}

void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i]));
}

TEST(Optimizer, FoundInfLeavesParametersStateAndCountersAlone) {
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    for (const std::string kind : kKinds) {
      SCOPED_TRACE(kind + " " + c10::toString(dtype));
      auto p = parameter({37}, dtype);
      const auto optimizer = make(kind, {p});
      for (int step = 0; step < 3; ++step) {
        p.mutable_grad() = torch::full_like(p, 0.5 + step);
        optimizer->step(flag(0));
      }
      const auto before = snapshot(*optimizer, p);
      ASSERT_EQ(before.size(), kind == "sgd" ? 2u : 4u);
      p.mutable_grad() =
          torch::full_like(p, std::numeric_limits<double>::infinity());
      optimizer->step(flag(1));
      expect_equal(snapshot(*optimizer, p), before);
    }
  }
}

TEST(Optimizer, ASkippedFirstStepIsAsIfItHadNotBeen) {
  for (const std::string kind : kKinds) {
    SCOPED_TRACE(kind);
    auto skipped = parameter({5}, torch::kFloat);
    auto plain = parameter({5}, torch::kFloat);
    const auto a = make(kind, {skipped});
    const auto b = make(kind, {plain});
    skipped.mutable_grad() =
        torch::full({5}, std::numeric_limits<double>::quiet_NaN());
    a->step(flag(1));
    for (int step = 0; step < 3; ++step) {
      skipped.mutable_grad() = torch::full({5}, 0.25 * (step + 1));
      plain.mutable_grad() = skipped.grad().clone();
      a->step(flag(0));
      b->step();
    }
    expect_equal(snapshot(*a, skipped), snapshot(*b, plain));
  }
}

TEST(Optimizer, ParametersWithoutGradientTakeNoPart) {
  for (const std::string kind : kKinds) {
    SCOPED_TRACE(kind);
    auto with = parameter({3}, torch::kFloat);
    auto without = parameter({3}, torch::kFloat);
    const auto optimizer = make(kind, {without, with});
    with.mutable_grad() = torch::ones({3});
    optimizer->step();
    EXPECT_TRUE(torch::equal(without, torch::ones({3})));
    EXPECT_FALSE(torch::equal(with, torch::ones({3})));
    EXPECT_TRUE(optimizer->state().parameters[0].empty());
    EXPECT_FALSE(optimizer->state().parameters[1].empty());

    // A parameter that joins later starts at its own first step.
    auto late = parameter({3}, torch::kFloat);
    const auto alone = make(kind, {late});
    late.mutable_grad() = torch::full({3}, 2.0);
    without.mutable_grad() = torch::full({3}, 2.0);
    optimizer->step();
    alone->step();
    EXPECT_TRUE(torch::equal(without, late));
  }
}

TEST(Optimizer, DevicesAndTypesMayBeMixed) {
  for (const std::string kind : kKinds) {
    SCOPED_TRACE(kind);
    auto a = parameter({4}, torch::kFloat);
    auto b = parameter({4}, torch::kDouble);
    auto c = parameter({4}, torch::kBFloat16);
    const auto optimizer = make(kind, {a, b, c});
    for (const auto& p : {a, b, c}) p.mutable_grad() = torch::ones_like(p);
    optimizer->step(flag(0));
    for (const auto& p : {a, b, c}) EXPECT_LT(p[0].item<double>(), 0.95);
    EXPECT_NEAR(a[0].item<double>(), b[0].item<double>(), 1e-6);
  }
}

TEST(Optimizer, Float64IsComputedInFloat64) {
  // One step of AdamW by hand; with fresh state the update is lr * sign.
  auto p = parameter({1}, torch::kDouble);
  AdamW optimizer({p}, {.lr = 0.1, .weight_decay = 0.0});
  p.mutable_grad() = torch::full({1}, 1.0 / 3, torch::kDouble);
  optimizer.step();
  EXPECT_NEAR(p[0].item<double>(), 1 - 0.1 / (1 + 3e-8), 1e-14);
}

TEST(Optimizer, BFloat16IsTheRoundedResultOfFloat32) {
  torch::manual_seed(1);
  for (const std::string kind : kKinds) {
    for (const int64_t size : {5, 16, 37, 4099}) {
      SCOPED_TRACE(kind + " " + std::to_string(size));
      auto narrow = torch::randn({size}, torch::kBFloat16).requires_grad_();
      const auto narrow_optimizer = make(kind, {narrow});
      for (int step = 0; step < 3; ++step) {
        auto wide = narrow.detach().to(torch::kFloat).requires_grad_();
        const auto wide_optimizer = make(kind, {wide});
        wide_optimizer->load(narrow_optimizer->state());
        narrow.mutable_grad() = torch::randn({size}, torch::kBFloat16);
        wide.mutable_grad() = narrow.grad().to(torch::kFloat);
        narrow_optimizer->step(flag(0));
        wide_optimizer->step(flag(0));
        auto expected = snapshot(*wide_optimizer, wide);
        const auto got = snapshot(*narrow_optimizer, narrow);
        for (size_t i = 0; i < got.size(); ++i) {
          expected[i] = expected[i].to(got[i].scalar_type());
        }
        expect_equal(got, expected);
      }
    }
  }
}

TEST(Optimizer, AGradientOfAnotherMemoryLayoutIsUnderstood) {
  // The fused CPU kernels ignore strides.
  auto p = torch::zeros({3, 2}).t().requires_grad_();  // 2 x 3
  p = p.detach().requires_grad_();
  Sgd optimizer({p}, {.lr = 1});
  p.mutable_grad() = torch::arange(6.0).view({2, 3});
  optimizer.step();
  EXPECT_TRUE(torch::equal(p, -torch::arange(6.0).view({2, 3})));
}

TEST(Optimizer, GroupsHaveTheirOwnLearningRateAndDecay) {
  auto a = parameter({2}, torch::kFloat);
  auto b = parameter({2}, torch::kFloat);
  Sgd optimizer({{.name = "a", .parameters = {a}, .lr_scale = 0.1},
                 {.name = "b", .parameters = {b}, .weight_decay = 0.5}},
                {.lr = 1});
  optimizer.set_lr(2);
  EXPECT_EQ(optimizer.lr(), 2);
  a.mutable_grad() = torch::ones({2});
  b.mutable_grad() = torch::ones({2});
  optimizer.step();
  EXPECT_FLOAT_EQ(a[0].item<float>(), 1 - 0.2f);
  EXPECT_FLOAT_EQ(b[0].item<float>(), 1 - 2 * 1.5f);
}

TEST(Optimizer, WeightDecayHasPythonsDefaults) {
  auto p = parameter({2}, torch::kFloat);
  EXPECT_EQ(AdamW({p}).state().groups[0].at("weight_decay"), 0.01);
  EXPECT_EQ(Adam({p}).state().groups[0].at("weight_decay"), 0);
}

TEST(Optimizer, ClearedGradientsAreUndefinedEvenIfTheyAreViews) {
  auto p = parameter({4}, torch::kFloat);
  const auto bucket = torch::ones({8});
  p.mutable_grad() = bucket.slice(0, 0, 4);
  AdamW optimizer({p});
  optimizer.step_and_clear();
  EXPECT_FALSE(p.grad().defined());
  EXPECT_TRUE(torch::equal(bucket, torch::ones({8})));
}

TEST(Optimizer, RefusesWhatItCannotTrain) {
  auto p = parameter({2}, torch::kFloat);
  EXPECT_THROW(AdamW(std::vector<Tensor>{}), ConfigError);
  EXPECT_THROW(AdamW({p, p}), ConfigError);
  EXPECT_THROW(AdamW({parameter({2}, torch::kHalf)}), ConfigError);
  EXPECT_THROW(AdamW({p * 2}), ConfigError);
  EXPECT_THROW(AdamW({torch::ones({4, 4}).slice(1, 0, 2)}), ConfigError);
  EXPECT_THROW(AdamW({p}, {.lr = -1}), ConfigError);
  EXPECT_THROW(AdamW({p}, {.beta1 = 1}), ConfigError);
  EXPECT_THROW(Sgd({p}, {.nesterov = true}), ConfigError);
  EXPECT_THROW(make_optimizer("lion", {{.parameters = {p}}}, {}), ConfigError);
  AdamW optimizer({p});
  EXPECT_THROW(optimizer.set_lr(std::nan("")), ConfigError);
  EXPECT_THROW(optimizer.step(torch::zeros({1})), ConfigError);
  p.mutable_grad() = torch::ones({2}).to_sparse();
  EXPECT_THROW(optimizer.step(), ConfigError);
}

// So that a step that finds no memory can be repeated.
TEST(Optimizer, AStepThatFailsBeforeItsLastUpdateHasChangedNothing) {
  auto good = parameter({2}, torch::kFloat);
  auto bad = parameter({2}, torch::kFloat);
  const Tensor before = good.detach().clone();
  AdamW optimizer({{.name = "good", .parameters = {good}},
                   {.name = "bad", .parameters = {bad}}});
  good.mutable_grad() = torch::ones({2});
  bad.mutable_grad() = torch::ones({2}).to_sparse();
  EXPECT_THROW(optimizer.step(), ConfigError);
  EXPECT_TRUE(good.detach().equal(before));
}

}  // namespace
}  // namespace lockstep
