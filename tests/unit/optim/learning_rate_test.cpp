// Schedules, plateau and scaling; tests/interop compares them with Python.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.h"
#include "lockstep/optim/lr_scaling.h"
#include "lockstep/optim/plateau.h"
#include "lockstep/schedule.h"

namespace lockstep {
namespace {

TEST(Schedule, WarmsUpToTheBase) {
  const ScheduleConfig config{.warmup_updates = 4};
  EXPECT_EQ(lr_at(config, 8, 1), 2);
  EXPECT_EQ(lr_at(config, 8, 4), 8);
  EXPECT_EQ(lr_at(config, 8, 5), 8);
  EXPECT_EQ(lr_at(config, 8, 1000000), 8);
}

TEST(Schedule, LinearAndCosineStartAtTheBaseAndEndAtTheMinimum) {
  for (const char* kind : {"linear", "cosine"}) {
    const ScheduleConfig config{.kind = kind,
                                .warmup_updates = 10,
                                .total_updates = 110,
                                .min_lr = 0.5};
    EXPECT_EQ(lr_at(config, 2, 10), 2);
    EXPECT_EQ(lr_at(config, 2, 11), 2);
    EXPECT_NEAR(lr_at(config, 2, 61), 1.25, 1e-12);
    EXPECT_GT(lr_at(config, 2, 110), 0.5);
    EXPECT_EQ(lr_at(config, 2, 111), 0.5);
    EXPECT_EQ(lr_at(config, 2, 5000), 0.5);
  }
}

TEST(Schedule, StepsDown) {
  const ScheduleConfig config{.kind = "step", .step_updates = 3, .gamma = 0.5};
  EXPECT_EQ(lr_at(config, 8, 3), 8);
  EXPECT_EQ(lr_at(config, 8, 4), 4);
  EXPECT_EQ(lr_at(config, 8, 7), 2);
}

TEST(Schedule, SaysWhatIsWrong) {
  EXPECT_THROW(check_schedule(ScheduleConfig{.kind = "cosine"}), ConfigError);
  EXPECT_THROW(check_schedule(ScheduleConfig{
                   .kind = "linear", .warmup_updates = 5, .total_updates = 5}),
               ConfigError);
  EXPECT_THROW(check_schedule(ScheduleConfig{.kind = "step"}), ConfigError);
  EXPECT_THROW(check_schedule(ScheduleConfig{.warmup_updates = -1}),
               ConfigError);
  EXPECT_THROW(check_schedule(ScheduleConfig{.min_lr = -1}), ConfigError);
  try {
    check_schedule(ScheduleConfig{.kind = "cosin"});
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'cosine'?"),
              std::string::npos);
  }
}

TEST(Plateau, ReducesAfterPatienceAndNanIsBad) {
  optim::Plateau plateau({.factor = 0.5, .patience = 1});
  plateau.observe(1);
  plateau.observe(std::nan(""));
  EXPECT_EQ(plateau.factor(), 1);
  plateau.observe(1);
  EXPECT_EQ(plateau.factor(), 0.5);
  plateau.observe(0.5);
  plateau.observe(0.6);
  EXPECT_EQ(plateau.factor(), 0.5);
}

TEST(Plateau, StateGoesThroughACheckpoint) {
  optim::Plateau plateau({.factor = 0.5, .patience = 1});
  plateau.observe(1);
  plateau.observe(1);
  optim::Plateau loaded({.factor = 0.5, .patience = 1});
  loaded.load(plateau.state());
  loaded.observe(1);
  EXPECT_EQ(loaded.factor(), 0.5);
}

TEST(Plateau, TheSmallestRateIsMeasuredAgainstTheBase) {
  optim::Plateau plateau(
      {.factor = 0.1, .patience = 0, .base_lr = 0.01, .min_lr = 0.004});
  plateau.observe(1);
  plateau.observe(1);
  EXPECT_EQ(plateau.lr(), 0.004);
  EXPECT_DOUBLE_EQ(plateau.factor(), 0.4);
}

TEST(Plateau, RefusesSettingsThatMakeNoSense) {
  EXPECT_THROW(optim::Plateau({.mode = "low"}), ConfigError);
  EXPECT_THROW(optim::Plateau({.factor = 1}), ConfigError);
  EXPECT_THROW(optim::Plateau({.patience = -1}), ConfigError);
  EXPECT_THROW(optim::Plateau({.threshold_mode = "relative"}), ConfigError);
}

TEST(LrScaling, ShowsItsArithmetic) {
  const double base = 1e-4;
  EXPECT_EQ(optim::scaling_text(base, optim::parse_lr_scaling("linear"), 8),
            "learning rate 0.0008 = 0.0001 x 8 processes (linear scaling)");
  EXPECT_EQ(optim::scaling_text(base, optim::parse_lr_scaling("sqrt"), 8),
            "learning rate 0.000283 = 0.0001 x sqrt(8) (square root scaling "
            "for 8 processes)");
  EXPECT_EQ(optim::scaling_text(base, optim::parse_lr_scaling("none"), 8),
            "learning rate 0.0001 (no scaling for 8 processes)");
  EXPECT_DOUBLE_EQ(optim::scaled_lr(base, optim::LrScaling::kLinear, 8), 8e-4);
  EXPECT_DOUBLE_EQ(optim::scaled_lr(base, optim::LrScaling::kSqrt, 4), 2e-4);
  EXPECT_EQ(optim::scaled_lr(base, optim::LrScaling::kNone, 4), base);
  EXPECT_THROW(optim::parse_lr_scaling("Linear"), ConfigError);
}

}  // namespace
}  // namespace lockstep
