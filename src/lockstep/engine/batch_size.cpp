#include "lockstep/engine/batch_size.h"

#include <fmt/format.h>

#include "lockstep/base/divide.h"
#include "lockstep/error.h"

namespace lockstep::engine {
namespace {

[[noreturn]] void refuse(int64_t global, const std::string& product,
                         int64_t factor) {
  const int64_t below = global / factor * factor;
  throw ConfigError(fmt::format(
      "--global_batch_size {} is not a multiple of {} = {}; use {}{}{} or "
      "change the others",
      global, product, factor, below > 0 ? fmt::format("{}", below) : "",
      below > 0 ? ", " : "", below + factor));
}

}  // namespace

BatchSize divide_batch(int64_t global, int64_t largest_micro_batch,
                       int num_processes) {
  const int64_t share = base::divide_up(global, int64_t{num_processes});
  BatchSize batch{.num_processes = num_processes};
  batch.accumulation = base::divide_up(share, largest_micro_batch);
  batch.per_process = base::divide_up(share, batch.accumulation);
  if (batch.effective() != global) batch.uneven_total = global;
  return batch;
}

BatchSize resolve_batch_size(const TrainConfig& config, const Options& options,
                             int num_processes, Shares shares) {
  BatchSize batch{.per_process = config.batch_size,
                  .num_processes = num_processes,
                  .accumulation = config.gradient_accumulation_steps};
  if (!config.global_batch_size) return batch;
  const int64_t global = *config.global_batch_size;
  const bool has_batch = options.was_given("batch_size");
  const bool has_accumulation =
      options.was_given("gradient_accumulation_steps");
  if (shares == Shares::kUneven) {
    const int64_t micro_batches = num_processes * batch.accumulation;
    return divide_batch(
        global,
        has_batch ? batch.per_process : base::divide_up(global, micro_batches),
        num_processes);
  }
  if (has_batch && has_accumulation) {
    if (batch.effective() != global) {
      throw ConfigError(
          fmt::format("--global_batch_size {} contradicts {} per process "
                      "\u00d7 {} processes "
                      "\u00d7 {} accumulation = {}: leave one of the three out",
                      global, batch.per_process, num_processes,
                      batch.accumulation, batch.effective()));
    }
    return batch;
  }
  if (has_batch) {
    const int64_t factor = batch.per_process * num_processes;
    if (global % factor != 0) {
      refuse(global, "--batch_size \u00d7 processes", factor);
    }
    batch.accumulation = global / factor;
    return batch;
  }
  const int64_t factor = num_processes * batch.accumulation;
  if (global % factor != 0) {
    refuse(global,
           has_accumulation ? "processes \u00d7 --gradient_accumulation_steps"
                            : "the number of processes",
           factor);
  }
  batch.per_process = global / factor;
  return batch;
}

std::string batch_size_text(const BatchSize& batch) {
  return fmt::format(
      "effective batch {} = {}{} per process \u00d7 {} process{} \u00d7 {} "
      "accumulation",
      batch.effective(), batch.uneven_total ? "at most " : "",
      batch.per_process, batch.num_processes,
      batch.num_processes == 1 ? "" : "es", batch.accumulation);
}

void check_batch_norm(const BatchSize& batch, int64_t num_samples,
                      const TrainConfig& config) {
  const int64_t together = batch.per_process * batch.num_processes;
  if (together < 2) {
    throw ConfigError(
        "batch normalisation needs at least two samples at a time: raise "
        "--batch_size");
  }
  if (batch.effective() % together == 1) {
    throw ConfigError(fmt::format(
        "batch normalisation needs at least two samples at a time, and a step "
        "of {} samples ends with one on {} processes: use another "
        "--global_batch_size or --batch_size",
        batch.effective(), batch.num_processes));
  }
  const int64_t left = num_samples % batch.effective();
  if (config.drop_last || left % together != 1) return;
  throw ConfigError(fmt::format(
      "batch normalisation needs at least two samples at a time, and an epoch "
      "of {} samples ends with one: use --drop_last or another --batch_size",
      num_samples));
}

}  // namespace lockstep::engine
