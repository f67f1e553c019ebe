// The loss scale of float16 training: what torch.amp.GradScaler is in Python,
// without reading a value back from the device.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "lockstep/tensor/tensor.h"

namespace lockstep::optim {

struct GradScalerConfig {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // good updates until the scale grows
};

// What Python's GradScaler.state_dict() holds, where the tensors are numbers;
// growth_tracker is called _growth_tracker there.
struct GradScalerState {
  at::Tensor scale = {};           // 0-dim float32
  at::Tensor growth_tracker = {};  // 0-dim int32: good updates since a change
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;
};

// One update: scaler.scale(loss).backward(); then
//   report = prepare_gradients(parameters, scaler.inverse_scale(), max_norm);
//   optimizer.step_and_clear(report.found_inf);
//   scaler.update(report.found_inf);
// Not thread-safe.
class GradScaler {
 public:
  GradScaler(const GradScalerConfig& config, c10::Device device);

  at::Tensor scale(const at::Tensor& loss) const;
  at::Tensor inverse_scale() const;
  // Shrinks the scale when found_inf is 1; grows it after enough good updates.
  void update(const at::Tensor& found_inf);

  // Both are the scaler's own tensors: copy them before the next update.
  const at::Tensor& scale_tensor() const { return scale_; }
  GradScalerState state() const;
  // Takes scale and growth tracker; factors and interval stay those of this
  // object.
  void load(const GradScalerState& state);

 private:
  GradScalerConfig config_;
  at::Tensor scale_;
  at::Tensor growth_tracker_;
};

}  // namespace lockstep::optim
