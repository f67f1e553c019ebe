#include "lockstep/optim/grad_scaler.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

const c10::Device kCpu("cpu");

float scale_of(const optim::GradScaler& scaler) {
  return scaler.scale_tensor().item<float>();
}

TEST(GradScaler, ScalesTheLossAndKnowsTheInverse) {
  const optim::GradScaler scaler({}, kCpu);
  EXPECT_EQ(scaler.scale(torch::tensor(0.5f)).item<float>(), 32768);
  EXPECT_EQ(scaler.inverse_scale().item<float>(), 1.0f / 65536);
  EXPECT_EQ(scaler.inverse_scale().scalar_type(), torch::kFloat);
}

TEST(GradScaler, ShrinksOnInfAndGrowsAfterTheInterval) {
  optim::GradScaler scaler({.init_scale = 8, .growth_interval = 3}, kCpu);
  const auto good = torch::tensor(0.0f);
  const auto bad = torch::tensor(1.0f);
  scaler.update(good);
  scaler.update(good);
  EXPECT_EQ(scale_of(scaler), 8);
  scaler.update(good);
  EXPECT_EQ(scale_of(scaler), 16);
  scaler.update(good);
  scaler.update(good);
  scaler.update(bad);  // The count starts anew.
  EXPECT_EQ(scale_of(scaler), 8);
  scaler.update(good);
  scaler.update(good);
  EXPECT_EQ(scale_of(scaler), 8);
  scaler.update(good);
  EXPECT_EQ(scale_of(scaler), 16);
}

TEST(GradScaler, StateGoesThroughACheckpoint) {
  optim::GradScaler scaler({.init_scale = 4, .growth_interval = 3}, kCpu);
  const auto good = torch::tensor(0.0f);
  scaler.update(good);
  scaler.update(good);
  optim::GradScaler loaded({.init_scale = 1, .growth_interval = 3}, kCpu);
  loaded.load(scaler.state());
  EXPECT_EQ(scale_of(loaded), 4);
  loaded.update(good);
  EXPECT_EQ(scale_of(loaded), 8);
  EXPECT_EQ(scale_of(scaler), 4) << "loaded by reference";
  EXPECT_EQ(scaler.state().growth_interval, 3);
  EXPECT_THROW(loaded.load({}), ConfigError);
}

TEST(GradScaler, RefusesFactorsThatMakeNoSense) {
  EXPECT_THROW(optim::GradScaler({.init_scale = 0}, kCpu), ConfigError);
  EXPECT_THROW(optim::GradScaler({.growth_factor = 1}, kCpu), ConfigError);
  EXPECT_THROW(optim::GradScaler({.backoff_factor = 1}, kCpu), ConfigError);
  EXPECT_THROW(optim::GradScaler({.growth_interval = 0}, kCpu), ConfigError);
}

}  // namespace
}  // namespace lockstep
