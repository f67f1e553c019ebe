// Linear layer and activation; on a GPU the activation's kernel adds the bias.
#pragma once

#include "lockstep/kernels/activation_request.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// Activation of x * weight^T + bias; x [..., in], weight [out, in], bias [out]
// or undefined. kSwiGlu: the result has half the channels.
at::Tensor linear_activation(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias, ActivationKind kind);

}  // namespace lockstep::kernels
