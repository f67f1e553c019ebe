#include "lockstep/kernels/qkv_heads.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "lockstep/kernels/cuda_call.h"
#include "lockstep/kernels/head_gradients.h"
#include "lockstep/kernels/optional_tensor.h"
#include "lockstep/kernels/qkv_heads_request.h"

namespace lockstep::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class QkvHeadsFunction : public torch::autograd::Function<QkvHeadsFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& qkv,
                               const OptionalTensor& bias) {
    context->saved_data["sizes"] = qkv.sizes().vec();
    context->saved_data["has_bias"] = bias.has_value();
    return {qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2)};
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto sizes = context->saved_data["sizes"].toIntVector();
    const at::TensorOptions options = gradients[0].options();
    const int64_t rows = sizes[0] * sizes[1];
    const at::Tensor d_qkv = at::empty(sizes, options);
    QkvGradientRequest request{.d_qkv = d_qkv.mutable_data_ptr(),
                               .num_samples = sizes[0],
                               .num_tokens = sizes[1],
                               .num_heads = static_cast<int>(sizes[3]),
                               .size = static_cast<int>(sizes[4]),
                               .type = element_type(d_qkv)};
    const HeadGradients d_heads(gradients, request.d_heads, request.strides);
    at::Tensor d_bias;
    at::Tensor partial_sums;
    if (context->saved_data["has_bias"].toBool()) {
      const int64_t width = 3 * sizes[3] * sizes[4];
      d_bias = at::empty({width}, options.dtype(at::kFloat));
      partial_sums = at::empty({qkv_gradient_blocks(rows), width},
                               options.dtype(at::kFloat));
      request.d_bias = d_bias.mutable_data_ptr<float>();
      request.partial_sums = partial_sums.mutable_data_ptr<float>();
    }
    launch("lockstep_cuda_qkv_gradient", request, d_qkv.device());
    return {d_qkv, d_bias};
  }
};

bool has_qkv_gradient_kernel(const at::Tensor& qkv) {
  return is_on_gpu(qkv) && qkv.numel() > 0 && has_element_type(qkv) &&
         qkv.size(4) % 8 == 0 &&
         qkv.numel() <= std::numeric_limits<int32_t>::max();
}

}  // namespace

QueriesKeysValues qkv_heads(const LinearResult& qkv) {
  if (has_qkv_gradient_kernel(qkv.out)) {
    const auto heads = QkvHeadsFunction::apply(qkv.out, optional(qkv.bias));
    return {.queries = heads[0], .keys = heads[1], .values = heads[2]};
  }
  const auto parts = with_bias_gradient(qkv).unbind(2);
  return {.queries = parts[0], .keys = parts[1], .values = parts[2]};
}

}  // namespace lockstep::kernels
