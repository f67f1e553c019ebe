// The recipes scribble and protein on a GPU: what the CPU computes.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "lockstep/cli/command_line.h"
#include "lockstep/recipes/protein/protein.h"
#include "lockstep/recipes/scribble/scribble.h"
#include "lockstep/tensor/autocast.h"
#include "lockstep/tensor/device.h"
#include "support/norm_comparison.h"
#include "support/ranks.h"
#include "unit/recipes/batch_of.h"

namespace lockstep::testing {
namespace {

using Words = std::vector<std::string>;

const Words kScribble = {"--data_path=builtin:scribble",
                         "--model_type=res50_ASPP_lorm",
                         "--layers=18",
                         "--numclasses=6",
                         "--crop_size=65",
                         "--l_segs=1",
                         "--l_pesudo=0.5",
                         "--l_ds=0.1",
                         "--l_dc=0.1",
                         "--l_lorm=0.1"};
const Words kProtein = {
    "--pdb_path=builtin:protein", "--hidden_dim=32", "--num_encoder_layers=2",
    "--num_decoder_layers=2",     "--num_heads=4",   "--dropout=0"};

Batch on(const at::Device& device, const Batch& batch) {
  Batch moved = batch;
  for (at::Tensor& tensor : moved.tensors) tensor = tensor.to(device);
  moved.seeds = batch.seeds.to(device);
  return moved;
}

// Terms and gradients by name, on the CPU.
using Numbers = std::map<std::string, at::Tensor>;

struct GradientCase {
  Words flags = {};
  std::vector<int64_t> samples = {};
  std::optional<at::ScalarType> autocast = {};
};

template <typename SomeRecipe>
Numbers compute(const GradientCase& with, DeviceChoice choice,
                at::ScalarType dtype) {
  const at::Device device = tensor::take_device(choice, 0, {});
  SomeRecipe recipe;
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse(with.flags, {});
  torch::manual_seed(1);
  const auto task = recipe.build(line.settings(), Purpose::kTrain);
  const auto model = task->model();
  model->to(device, dtype);
  const Batch batch = on(device, batch_of(*task->data().train, with.samples));
  SampleRandom random(batch.seeds);
  Loss loss;
  {
    const tensor::Autocast autocast(device.type(), with.autocast);
    loss = task->loss(batch, random);
  }
  Numbers numbers;
  at::Tensor sum;
  for (const LossTerm& term : loss.terms) {
    const auto mean = term.sum / term.normaliser.clamp_min(1);
    numbers[term.name] = mean.detach().cpu().to(at::kDouble);
    sum = sum.defined() ? sum + mean * term.weight : mean * term.weight;
  }
  sum.backward();
  for (const auto& entry : model->named_parameters()) {
    if (!entry.value().grad().defined()) continue;
    numbers[entry.key()] = entry.value().grad().cpu().to(at::kDouble);
  }
  return numbers;
}

void expect_equal(const Numbers& ours, const Numbers& expected,
                  double tolerance) {
  ASSERT_EQ(ours.size(), expected.size());
  ASSERT_GT(ours.size(), 10U);
  double whole = 0;
  for (const auto& [name, value] : expected) {
    whole = std::max(whole, value.norm().item<double>());
  }
  for (const auto& [name, value] : expected) {
    const double difference = (ours.at(name) - value).norm().item<double>();
    const double size = value.norm().item<double>();
    EXPECT_LE(difference, tolerance * size + 1e-3 * tolerance * whole) << name;
  }
}

TEST(GpuScribble, LossAndGradientsAreThoseOfTheCpu) {
  const GradientCase with{.flags = kScribble, .samples = {0, 1, 2}};
  expect_equal(
      compute<recipes::ScribbleRecipe>(with, DeviceChoice::kCuda, at::kDouble),
      compute<recipes::ScribbleRecipe>(with, DeviceChoice::kCpu, at::kDouble),
      1e-9);
}

TEST(GpuScribble, LormInHalfPrecisionIsNearThatInFull) {
  GradientCase with{.flags = kScribble, .samples = {0, 1, 2, 3}};
  const Numbers full =
      compute<recipes::ScribbleRecipe>(with, DeviceChoice::kCuda, at::kFloat);
  with.autocast = at::kHalf;
  const Numbers half =
      compute<recipes::ScribbleRecipe>(with, DeviceChoice::kCuda, at::kFloat);
  for (const auto& [name, value] : full) {
    ASSERT_TRUE(half.at(name).isfinite().all().item<bool>()) << name;
    if (value.dim() > 0) continue;
    EXPECT_NEAR(half.at(name).item<double>(), value.item<double>(),
                0.02 * std::abs(value.item<double>()))
        << name;
  }
}

TEST(GpuProtein, LossAndGradientsAreThoseOfTheCpuOnPaddedBatches) {
  const GradientCase with{.flags = kProtein, .samples = {0, 3, 5, 7, 11}};
  expect_equal(
      compute<recipes::ProteinRecipe>(with, DeviceChoice::kCuda, at::kDouble),
      compute<recipes::ProteinRecipe>(with, DeviceChoice::kCpu, at::kDouble),
      1e-9);
  expect_equal(
      compute<recipes::ProteinRecipe>(with, DeviceChoice::kCuda, at::kFloat),
      compute<recipes::ProteinRecipe>(with, DeviceChoice::kCpu, at::kFloat),
      1e-4);
}

TEST(GpuSyncBatchNorm, RanksEqualTheJoinedBatch) {
  run_ranks({.size = 2,
             .launcher_options = {"--share-gpus"},
             .device = DeviceChoice::kCuda},
            [](const World& world) {
              compare_norms(world, {.batches = {3, 5}});
              compare_norms(world, {.format = at::MemoryFormat::ChannelsLast,
                                    .batches = {2, 2}});
              compare_norms(world, {.batches = {0, 4}});
              compare_norms(world, {.dtype = at::kDouble,
                                    .tolerance = 1e-10,
                                    .batches = {4, 1}});
            });
}

TEST(GpuSyncBatchNorm, ThreeRanksOfWhichTwoHaveNothing) {
  run_ranks(
      {.size = 3,
       .launcher_options = {"--share-gpus"},
       .device = DeviceChoice::kCuda},
      [](const World& world) { compare_norms(world, {.batches = {0, 4, 0}}); });
}

}  // namespace
}  // namespace lockstep::testing
