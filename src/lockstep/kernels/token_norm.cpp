#include "lockstep/kernels/token_norm.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lockstep/kernels/cuda_call.h"
#include "lockstep/kernels/token_norm_request.h"

namespace lockstep::kernels {
namespace {

bool has_token_norm_kernel(const at::Tensor& x, const TokenNorm& norm) {
  const at::ScalarType type = norm.weight.scalar_type();
  return x.is_cuda() && x.scalar_type() == at::kFloat &&
         (type == at::kHalf || type == at::kBFloat16) && x.numel() > 0 &&
         x.size(-1) % 4 == 0 && is_packed(x) && is_packed(norm.weight) &&
         is_packed(norm.bias) &&
         !any_takes_gradient({x, norm.weight, norm.bias});
}

at::Tensor norm_on_cuda(const at::Tensor& x, const TokenNorm& norm) {
  const at::ScalarType type = norm.weight.scalar_type();
  at::Tensor out = at::empty(x.sizes(), x.options().dtype(type));
  const TokenNormRequest request{
      .x = x.const_data_ptr<float>(),
      .weight = norm.weight.const_data_ptr(),
      .bias = norm.bias.const_data_ptr(),
      .out = out.mutable_data_ptr(),
      .num_rows = x.numel() / x.size(-1),
      .size = x.size(-1),
      .eps = static_cast<float>(norm.eps),
      .type = type == at::kHalf ? HalfType::kFloat16 : HalfType::kBfloat16};
  launch("lockstep_cuda_norm_tokens", request, x.device());
  return out;
}

}  // namespace

bool any_takes_gradient(at::TensorList tensors) {
  return at::GradMode::is_enabled() &&
         std::any_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& t) { return t.requires_grad(); });
}

at::Tensor norm_tokens(const at::Tensor& x, const TokenNorm& norm) {
  if (has_token_norm_kernel(x, norm)) return norm_on_cuda(x, norm);
  const at::ScalarType type = norm.weight.scalar_type();
  const at::ScalarType wide = at::promote_types(x.scalar_type(), type);
  return at::layer_norm(x.to(wide), {x.size(-1)}, norm.weight.to(wide),
                        norm.bias.to(wide), norm.eps)
      .to(type);
}

}  // namespace lockstep::kernels
