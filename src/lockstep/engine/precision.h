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
  // Type of the operations that autocast runs in fewer bits.
  std::optional<at::ScalarType> autocast = {};
  bool scales_loss = false;
  bool allows_tf32 = false;
  // A sentence for the user when it is not what was asked for; else empty.
  std::string note = {};
};

Precision resolve_precision(const TrainConfig& config, const Options& options,
                            c10::Device device);

// Sets libtorch's switches for float32 products.
void apply_precision(const Precision& precision);

// Seeds torch's generators: before the model is made alike on every rank, after
// it with a stream per rank for dropout. `deterministic` refuses kernels that
// do not give the same bits again.
void seed_everything(int64_t seed);
void seed_dropout(int64_t seed, int rank);
void require_determinism();

// Equal shapes: cuDNN tries its kernels when it meets one for the first time;
// what it guesses without is at times a hundred times slower. Varying ones: not
// cuDNN's attention, which takes 0.1 s for every new shape.
void choose_kernels(BatchShapes shapes);

}  // namespace lockstep::engine
