#include "lockstep/engine/precision.h"

#include <gtest/gtest.h>

#include "unit/engine/flags.h"

namespace lockstep {
namespace {

using testing::config_error;
using testing::contains;

const c10::Device kCpu(c10::DeviceType::CPU);
const c10::Device kGpu(c10::DeviceType::CUDA, 0);

engine::Precision precision_for(const std::vector<std::string>& words,
                                c10::Device device,
                                const std::string& default_of_recipe = "fp32") {
  testing::Flags flags(words);
  if (!flags.options.was_given("precision")) {
    flags.config.precision = default_of_recipe;
  }
  engine::check_config(flags.config, flags.options);
  return engine::resolve_precision(flags.config, flags.options, device);
}

TEST(Precision, AutoIsBf16OnAGpuAndFp32OnTheCpu) {
  EXPECT_EQ(precision_for({}, kCpu, "auto").name, "fp32");
  EXPECT_FALSE(precision_for({"--precision=auto"}, kCpu).autocast);
  EXPECT_EQ(precision_for({"--precision=fp64"}, kCpu, "auto").name, "fp64");
}

TEST(Precision, NamesMeanWhatTheySay) {
  const engine::Precision full = precision_for({}, kCpu);
  EXPECT_EQ(full.name, "fp32");
  EXPECT_FALSE(full.autocast || full.scales_loss || full.allows_tf32);
  EXPECT_EQ(precision_for({"--precision=fp64"}, kCpu).dtype, at::kDouble);
  EXPECT_TRUE(precision_for({"--precision=tf32"}, kCpu).allows_tf32);
  const engine::Precision brain = precision_for({"--precision=bf16"}, kCpu);
  EXPECT_EQ(brain.autocast, at::kBFloat16);
  EXPECT_EQ(brain.dtype, at::kFloat);
  EXPECT_FALSE(brain.scales_loss);
}

TEST(Precision, Fp16ScalesTheLoss) {
  for (const c10::Device device : {kCpu, kGpu}) {
    const engine::Precision half = precision_for({"--precision=fp16"}, device);
    EXPECT_EQ(half.autocast, at::kHalf);
    EXPECT_TRUE(half.scales_loss);
    EXPECT_EQ(half.note, "");
  }
}

TEST(Precision, UseAmpIsFp16OnAGpuAndBf16OnACpu) {
  EXPECT_EQ(precision_for({"--use_amp"}, kGpu).autocast, at::kHalf);
  EXPECT_TRUE(precision_for({"--use_amp"}, kGpu).scales_loss);
  const engine::Precision cpu = precision_for({"--use_amp"}, kCpu);
  EXPECT_EQ(cpu.autocast, at::kBFloat16);
  EXPECT_FALSE(cpu.scales_loss);
}

TEST(Precision, ADefaultOfFp16IsBf16OnACpuWithASentence) {
  const engine::Precision precision = precision_for({}, kCpu, "fp16");
  EXPECT_EQ(precision.name, "bf16");
  EXPECT_TRUE(contains(precision.note, "bf16")) << precision.note;
}

TEST(Precision, Auto16IsFp16OnAGpuAndFp32OnTheCpu) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"--precision=auto16"}}) {
    EXPECT_EQ(precision_for(words, kGpu, "auto16").name, "fp16");
    EXPECT_TRUE(precision_for(words, kGpu, "auto16").scales_loss);
    EXPECT_EQ(precision_for(words, kCpu, "auto16").name, "fp32");
  }
  EXPECT_EQ(precision_for({"--use_amp"}, kCpu, "auto16").name, "bf16");
}

TEST(Precision, NoUseAmpTurnsADefaultOff) {
  for (const char* name : {"fp16", "auto", "auto16", "fp32"}) {
    EXPECT_EQ(precision_for({"--no_use_amp"}, kGpu, name).name, "fp32") << name;
  }
}

TEST(Precision, UseAmpAgreesWithMixedPrecisionOnly) {
  EXPECT_EQ(precision_for({"--use_amp", "--precision=bf16"}, kCpu).autocast,
            at::kBFloat16);
  EXPECT_EQ(precision_for({"--use_amp", "--precision=fp16"}, kGpu).autocast,
            at::kHalf);
  for (const std::string name : {"fp32", "tf32", "fp64"}) {
    const std::string text = config_error(
        [&] { precision_for({"--use_amp", "--precision", name}, kCpu); });
    EXPECT_TRUE(contains(text, "--use_amp")) << text;
    EXPECT_TRUE(contains(text, "--precision " + name)) << text;
  }
}

TEST(Precision, AnUnknownNameIsAnError) {
  EXPECT_NE(config_error([] { precision_for({"--precision=fp8"}, kCpu); }), "");
}

TEST(Precision, SeedsOfDropoutDifferByRankAndRun) {
  const auto draw = [] {
    return at::globalContext().defaultGenerator(kCpu).current_seed();
  };
  std::set<uint64_t> seeds;
  for (const int64_t seed : {0, 1}) {
    for (const int rank : {0, 1, 2}) {
      engine::seed_dropout(seed, rank);
      seeds.insert(draw());
    }
    engine::seed_everything(seed);
    seeds.insert(draw());
  }
  EXPECT_EQ(seeds.size(), 8U);
}

}  // namespace
}  // namespace lockstep
