// A recipe's task, as commands build it.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/cli/command_line.h"
#include "lockstep/recipe.h"
#include "unit/recipes/batch_of.h"

namespace lockstep::testing {

// `flags` and then `more`.
inline std::vector<std::string> with_flags(
    std::vector<std::string> flags, const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

template <typename SomeRecipe>
struct BuiltTask {
  explicit BuiltTask(const std::vector<std::string>& flags,
                     Purpose purpose = Purpose::kTrain) {
    // Threads that wait for each other are slow where others work too.
    at::set_num_threads(1);
    line.parse(flags, {});
    torch::manual_seed(1);
    task = recipe.build(line.settings(), purpose);
    data = task->data();
    model = task->model();
  }

  Batch batch(const std::vector<int64_t>& indices) const {
    return batch_of(*data.train, indices);
  }

  Loss loss_of(const Batch& made) {
    SampleRandom random(made.seeds);
    return task->loss(made, random);
  }

  double loss_sum(const Batch& made) {
    const torch::NoGradGuard no_grad;
    const Loss loss = loss_of(made);
    return loss.sum.item<double>();
  }

  template <typename Ability>
  Ability& as() {
    return *ability<Ability>(*task);
  }

  SomeRecipe recipe;
  cli::CommandLine line{Purpose::kTrain, recipe};
  std::unique_ptr<Task> task;
  DataSets data;
  std::shared_ptr<torch::nn::Module> model;
};

}  // namespace lockstep::testing
