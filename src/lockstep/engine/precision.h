// What --precision and --use_amp mean on a device.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "lockstep/options.h"
#include "lockstep/task.h"
#include "lockstep/train_config.h"

namespace lockstep::engine {

struct Precision {
  std::string name = "fp32";
  // Type of weights and inputs.
  at::ScalarType dtype = at::kFloat;
  // Autocast type; unset: no autocast.
  std::optional<at::ScalarType> autocast = {};
  bool scales_loss = false;
  bool allows_tf32 = false;
  // Message for the user when the setting could not be used as given; else
  // empty.
  std::string note = {};
};

Precision resolve_precision(const TrainConfig& config, const Options& options,
                            c10::Device device);

// Sets libtorch's TF32 switches.
void apply_precision(const Precision& precision);

// Seed torch's generators: equally on every rank before the model is built,
// then per rank for dropout. require_determinism() makes libtorch use
// deterministic kernels only.
void seed_everything(int64_t seed);
void seed_dropout(int64_t seed, int rank);
void require_determinism();

// kStatic: enables cuDNN benchmark mode; its heuristics can be a hundred times
// slower. kDynamic: disables cuDNN attention, which compiles for 0.1 s per new
// shape.
void choose_kernels(BatchShapes shapes);

}  // namespace lockstep::engine
