// A step never waits for the device: PyTorch's own check for reads of values
// back from it is made an error while steps run.
#include <c10/cuda/CUDAFunctions.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/cli/command_line.h"
#include "lockstep/engine/learner.h"
#include "lockstep/recipes/jit/jit.h"
#include "lockstep/recipes/protein/protein.h"
#include "lockstep/recipes/scribble/scribble.h"
#include "lockstep/recipes/tiny/tiny.h"
#include "lockstep/step_loader.h"
#include "support/ranks.h"

namespace lockstep::testing {
namespace {

using Arguments = std::vector<std::string>;

// From libc10_cuda, which is loaded at run time: the inline function of the
// header would give this program's own.
c10::cuda::WarningState& warning_state() {
  void* state =
      dlsym(RTLD_DEFAULT, "_ZZN3c104cuda13warning_stateEvE14warning_state_");
  if (state == nullptr) throw std::runtime_error("libc10_cuda is not loaded");
  return *static_cast<c10::cuda::WarningState*>(state);
}

// Scored by weights that are known on the device only.
class WeightedTask final : public Task {
 public:
  explicit WeightedTask(std::unique_ptr<Task> task) : task_(std::move(task)) {}

  DataSets data() const override { return task_->data(); }
  std::shared_ptr<torch::nn::Module> model() const override {
    return task_->model();
  }
  Loss loss(const Batch& batch, SampleRandom& random) override {
    Loss loss = task_->loss(batch, random);
    loss.normaliser = batch[0].amax({1, 2, 3}).gt(0.5).sum();
    loss.parts = {{"again", loss.sum}};
    return loss;
  }

 private:
  std::unique_ptr<Task> task_;
};

std::unique_ptr<Task> build(Recipe& recipe, const Arguments& flags) {
  cli::CommandLine line(Purpose::kTrain, recipe);
  line.parse(flags, {});
  return recipe.build(line.settings(), Purpose::kTrain);
}

void train_without_reading_back(Task& task, const World& world) {
  const DataSets data = task.data();
  engine::Learner learner(
      task, world,
      {.optimization = {.max_grad_norm = 1, .ema_decay = {0.9, 0.99}},
       .precision = {
           .name = "fp16", .autocast = at::kHalf, .scales_loss = true}});
  const StepLoader loader(
      data.train, world,
      {.global_batch_size = 32 * world.size(), .micro_batch_size = 16});
  Batches batches = loader.batches();
  const auto step = [&] {
    learner.begin_step(1e-3);
    for (int k = 0; k < 2; ++k) {
      const auto batch = batches.next();
      learner.forward(*batch);
      learner.backward();
    }
    learner.update();
  };
  // The first steps make buckets, state and handles.
  for (int i = 0; i < 4; ++i) step();
  warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR);
  for (int i = 0; i < 8; ++i) step();
  EXPECT_ANY_THROW(torch::ones({1}, world.device()).item<float>())
      << "the check does not see reads";
  warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
  EXPECT_TRUE(std::isfinite(learner.take_progress().loss));
}

TEST(GpuNoSync, AStepReadsNothingBack) {
  for (const int size : {1, 2}) {
    run_ranks({.size = size,
               .launcher_options = {"--share-gpus"},
               .device = DeviceChoice::kCuda},
              [](const World& world) {
                recipes::TinyRecipe recipe;
                WeightedTask task(build(recipe, {}));
                train_without_reading_back(task, world);
              });
  }
}

TEST(GpuNoSync, AStepOfJitReadsNothingBack) {
  run_ranks({.size = 1, .device = DeviceChoice::kCuda}, [](const World& world) {
    recipes::JitRecipe recipe;
    const auto task =
        build(recipe, {"--data_path=builtin:shapes", "--model=JiT-B/4",
                       "--img_size=16", "--dim=64", "--depth=4", "--heads=2",
                       "--attn_dropout=0.1", "--proj_dropout=0.1"});
    train_without_reading_back(*task, world);
  });
}

// LoRM, which needs the number of foreground pixels on the host, is not part.
TEST(GpuNoSync, AStepOfScribbleOrProteinReadsNothingBack) {
  run_ranks(
      {.size = 2,
       .launcher_options = {"--share-gpus"},
       .device = DeviceChoice::kCuda},
      [](const World& world) {
        recipes::ScribbleRecipe scribble;
        train_without_reading_back(
            *build(scribble,
                   {"--data_path=builtin:scribble", "--model_type=deeplabv3p",
                    "--layers=18", "--numclasses=6", "--crop_size=65",
                    "--l_segs=1", "--l_pesudo=0.5"}),
            world);
        recipes::ProteinRecipe protein;
        train_without_reading_back(
            *build(protein, {"--pdb_path=builtin:protein", "--hidden_dim=32"}),
            world);
      });
}

}  // namespace
}  // namespace lockstep::testing
