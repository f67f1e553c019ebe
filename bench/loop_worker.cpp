// CPU time of a step: the trainer's loop, or the same steps written out by
// hand.
//
//   loop_worker trainer|bare FOLDER
//
// Prints {"cpu_ms_per_step": ...}. Both run the recipe tiny with the same data,
// loss and optimizer; the difference of a long and a short run leaves the start
// out.
#include <sys/resource.h>
#include <torch/torch.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "lockstep/cli/command_line.h"
#include "lockstep/cli/commands.h"
#include "lockstep/optimizer.h"
#include "lockstep/program.h"
#include "lockstep/recipes/tiny/tiny.h"
#include "lockstep/step_loader.h"

namespace {

constexpr int kShort = 500;
constexpr int kLong = 5500;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Little to compute: what is left shows.
const std::vector<std::string> kFlags = {
    "--width",       "1", "--batch_size", "4",
    "--val_samples", "0", "--workers",    "1"};

void train(const std::filesystem::path& folder, int steps) {
  lockstep::recipes::TinyRecipe recipe;
  std::vector<std::string> flags = kFlags;
  flags.insert(flags.end(), {"--n_steps", std::to_string(steps), "--save_dir",
                             folder, "--overwrite", "--save_every", "1000000"});
  lockstep::cli::train_command(
      recipe, flags,
      {.output = {.out = [](std::string_view) {},
                  .err = [](std::string_view) {}},
       .environment = lockstep::base::process_environment()});
}

void train_by_hand(int steps) {
  lockstep::recipes::TinyRecipe recipe;
  lockstep::cli::CommandLine line(lockstep::Purpose::kTrain, recipe);
  line.parse(kFlags, {});
  const auto task = recipe.build(line.settings(), lockstep::Purpose::kTrain);
  const auto data = task->data();
  const auto model = task->model();
  lockstep::AdamW optimizer(model->parameters(), {.lr = 3e-3});
  const int64_t batch_size = line.config().batch_size;
  const lockstep::StepLoader loader(data.train, lockstep::Shard{},
                                    c10::Device(c10::DeviceType::CPU),
                                    {.global_batch_size = batch_size,
                                     .micro_batch_size = batch_size,
                                     .workers = 1});
  auto batches = loader.batches();
  for (int step = 0; step < steps; ++step) {
    const auto batch = batches.next();
    lockstep::SampleRandom random(batch->seeds);
    const at::Tensor sum = task->loss(*batch, random).sum;
    (sum / static_cast<double>(batch_size)).backward();
    optimizer.step_and_clear();
  }
}

}  // namespace

int main(int count, char** values) {
  return lockstep::run_program([&] {
    const std::string mode = count > 1 ? values[1] : "";
    const std::filesystem::path folder = count > 2 ? values[2] : ".";
    const auto run = [&](int steps) {
      const double begin = cpu_seconds();
      if (mode == "trainer") {
        train(folder, steps);
      } else {
        train_by_hand(steps);
      }
      return cpu_seconds() - begin;
    };
    run(kShort);  // Warms allocators and threads up.
    const double short_run = run(kShort);
    const double long_run = run(kLong);
    std::printf("{\"cpu_ms_per_step\": %.6f}\n",
                1e3 * (long_run - short_run) / (kLong - kShort));
  });
}
