// The autograd node behind a module's outputs. Private to parallel/.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::parallel {

// Passes the tensors through a node that runs first in backward: outputs that
// the loss does not use get no gradient (instead of zeros), and `on_backward`
// is called once per backward.
std::vector<at::Tensor> pass_through_sink(
    const std::vector<at::Tensor>& outputs,
    std::shared_ptr<std::function<void()>> on_backward);

}  // namespace lockstep::parallel
