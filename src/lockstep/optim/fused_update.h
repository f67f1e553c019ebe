// Gradient norm, clipping, optimizer and moving averages of a model on a GPU,
// in two passes over its memory.
#pragma once

#include <optional>
#include <vector>

#include "lockstep/ema.h"
#include "lockstep/kernels/working_weights.h"
#include "lockstep/optim/gradient_step.h"
#include "lockstep/optimizer.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {
struct OptimizerTable;
struct OptimizerTensor;
}  // namespace lockstep::kernels

namespace lockstep::optim {

// What prepare_gradients(), Optimizer::step() and Ema::update() do, with
// everything that differs from step to step in device memory: run() can be
// captured in a CUDA graph. AdamW gives the bits of Optimizer::step() for equal
// gradients, Adam and SGD all but the last one; the norm is summed in another
// order than prepare_gradients() does.
//
// Optimizer and averages must outlive it and keep their number.
class FusedUpdate {
 public:
  // `working` may be null; else run() keeps the copies up to date.
  FusedUpdate(Optimizer& optimizer, std::vector<Ema>& averages, double max_norm,
              const kernels::WorkingWeights* working = nullptr);

  // False before the first step of an optimizer, which makes its state, and for
  // what the kernels do not take: the CPU, other types than float32, more than
  // two averages.
  bool fits() const;

  // Begins a step: learning rate and weights of the averages for run(). Never
  // captured. Counts the update of the averages.
  void begin_step(double lr);

  // `factor` (0-dim float32) multiplies gradients, as the inverse_scale of
  // prepare_gradients().
  GradientReport run(const std::optional<at::Tensor>& factor);

 private:
  using Tables = std::vector<kernels::OptimizerTable>;

  bool fits(const at::Tensor& parameter) const;
  Tables tables();
  void measure(const Tables& tables, const std::optional<at::Tensor>& factor);
  void update(const Tables& tables, const std::optional<at::Tensor>& factor);

  Optimizer& optimizer_;
  std::vector<Ema>& averages_;
  double max_norm_;
  const kernels::WorkingWeights* working_;
  at::Tensor scalars_;   // kernels::StepScalars
  at::Tensor summary_;   // kernels::GradientSummary
  at::Tensor partials_;  // Sums of squares, one per chunk.
  // Gradients that were laid out anew, until their kernels are queued.
  std::vector<at::Tensor> gradients_;
};

}  // namespace lockstep::optim
