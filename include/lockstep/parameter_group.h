// Parameters that are trained with the same settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

struct ParameterGroup {
  std::string name = {};
  std::vector<at::Tensor> parameters = {};
  double lr_scale = 1;                      // times the optimizer's lr
  std::optional<double> weight_decay = {};  // none: the optimizer's own
};

}  // namespace lockstep
