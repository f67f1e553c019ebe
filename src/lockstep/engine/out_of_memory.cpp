#include "lockstep/engine/out_of_memory.h"

#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>

#include "lockstep/base/divide.h"
#include "lockstep/error.h"
#include "lockstep/sync_batch_norm.h"

namespace lockstep::engine {
namespace {

bool has_batch_statistics(torch::nn::Module& module) {
  const bool is_batch_norm =
      module.as<torch::nn::BatchNorm1dImpl>() != nullptr ||
      module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
      module.as<torch::nn::BatchNorm3dImpl>() != nullptr ||
      module.as<SyncBatchNormImpl>() != nullptr;
  // Frozen ones use what they have seen before.
  return is_batch_norm && module.is_training();
}

[[noreturn]] void refuse_halving(const std::string& reason) {
  throw ConfigError(fmt::format(
      "--on_oom halve: {}, and halving the batch would change the training; "
      "leave it out (a training that runs out of memory then ends), or accept "
      "the change with --on_oom halve_anyway",
      reason));
}

}  // namespace

OnOutOfMemory parse_on_out_of_memory(const std::string& name) {
  if (name == "halve") return OnOutOfMemory::kHalve;
  if (name == "halve_anyway") return OnOutOfMemory::kHalveAnyway;
  return OnOutOfMemory::kFail;
}

void check_halving(OnOutOfMemory choice, Learner& learner, const World& world) {
  if (choice != OnOutOfMemory::kFail && world.size() > 1 &&
      !world.can_reform()) {
    throw ConfigError(
        "--on_oom: several processes go on with a smaller batch only with "
        "--recover memory; add it, or leave --on_oom out");
  }
  if (choice != OnOutOfMemory::kHalve) return;
  for (const auto& item :
       learner.model().named_modules("", /*include_self=*/false)) {
    if (!has_batch_statistics(*item.value())) continue;
    refuse_halving(
        fmt::format("the layer '{}' computes its statistics over a micro-batch",
                    item.key()));
  }
}

void check_halving_of_loss(OnOutOfMemory choice, const Learner& learner) {
  if (choice != OnOutOfMemory::kHalve || !learner.has_loss_terms()) return;
  refuse_halving(
      "the terms of the loss are means over a micro-batch, each with a "
      "normaliser of its own");
}

BatchSize halved(BatchSize batch) {
  const int64_t share = batch.per_process * batch.accumulation;
  batch.per_process = base::divide_up(batch.per_process, 2);
  batch.accumulation = base::divide_up(share, batch.per_process);
  return batch;
}

std::string halving_text(int64_t step, const BatchSize& before,
                         const BatchSize& after, int64_t global_batch) {
  std::string text = fmt::format(
      "out of memory in step {}: the batch per process is halved from {} to {} "
      "and accumulation raised from {} to {}; the effective batch stays {}, "
      "and the step is repeated",
      step, before.per_process, after.per_process, before.accumulation,
      after.accumulation, global_batch);
  if (after.effective() == global_batch) {
    text += fmt::format(
        ". To start so: --batch_size {} --gradient_accumulation_steps {}",
        after.per_process, after.accumulation);
  }
  return text;
}

}  // namespace lockstep::engine
