#include "lockstep/kernels/activation.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <optional>

#include "lockstep/kernels/cuda_call.h"
#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/optional_tensor.h"

namespace lockstep::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

int64_t out_size(const at::Tensor& input, ActivationKind kind) {
  return kind == ActivationKind::kSwiGlu ? input.size(-1) / 2 : input.size(-1);
}

class ActivationFunction
    : public torch::autograd::Function<ActivationFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const OptionalTensor& optional_bias, int64_t kind) {
    const at::Tensor bias = optional_bias.value_or(at::Tensor());
    const auto activation = static_cast<ActivationKind>(kind);
    const int64_t size = out_size(input, activation);
    auto sizes = input.sizes().vec();
    sizes.back() = size;
    const at::Tensor out = at::empty(sizes, input.options());
    launch("lockstep_cuda_activation",
           ActivationRequest{.input = input.const_data_ptr(),
                             .bias = data_or_null<float>(bias),
                             .out = out.mutable_data_ptr(),
                             .rows = input.numel() / input.size(-1),
                             .size = size,
                             .kind = activation,
                             .type = element_type(input)},
           input.device());
    context->save_for_backward({input, bias});
    context->saved_data["kind"] = kind;
    return out;
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const at::Tensor& bias = saved[1];
    const auto kind =
        static_cast<ActivationKind>(context->saved_data["kind"].toInt());
    const int64_t rows = input.numel() / input.size(-1);
    const at::Tensor d_out = gradients[0].contiguous();
    const at::Tensor d_input = at::empty_like(input);
    at::Tensor d_bias;
    at::Tensor partial_sums;
    if (bias.defined()) {
      d_bias = at::empty_like(bias);
      partial_sums =
          at::empty({activation_blocks(rows), input.size(-1)}, bias.options());
    }
    launch("lockstep_cuda_activation_backward",
           ActivationRequest{
               .input = input.const_data_ptr(),
               .bias = data_or_null<float>(bias),
               .d_out = d_out.const_data_ptr(),
               .d_input = d_input.mutable_data_ptr(),
               .d_bias = mutable_data_or_null<float>(d_bias),
               .partial_sums = mutable_data_or_null<float>(partial_sums),
               .rows = rows,
               .size = out_size(input, kind),
               .kind = kind,
               .type = element_type(input)},
           input.device());
    return {d_input, d_bias, {}};
  }
};

bool has_activation_kernel(const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& bias) {
  constexpr int64_t kMostValues = std::numeric_limits<int32_t>::max();
  return is_on_gpu(x) && x.numel() > 0 && has_element_type(x) &&
         weight.size(0) % 16 == 0 &&
         x.numel() / x.size(-1) * weight.size(0) <= kMostValues &&
         (!bias.defined() ||
          (bias.device() == x.device() && bias.numel() == weight.size(0) &&
           bias.scalar_type() == at::kFloat && is_packed(bias)));
}

at::Tensor activate(const at::Tensor& x, ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kGelu: return at::gelu(x);
    case ActivationKind::kGeluTanh: return at::gelu(x, "tanh");
    case ActivationKind::kSilu: return at::silu(x);
    case ActivationKind::kSwiGlu: break;
  }
  const auto halves = x.chunk(2, -1);
  return at::silu(halves[0]) * halves[1];
}

}  // namespace

at::Tensor linear_activation(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias, ActivationKind kind) {
  if (!has_activation_kernel(x, weight, bias)) {
    return activate(kernels::linear(x, weight, bias), kind);
  }
  const at::Tensor product = kernels::linear(x, weight);
  if (!has_element_type(product) || !is_packed(product)) {
    return activate(bias.defined() ? product + bias : product, kind);
  }
  return ActivationFunction::apply(product, optional(bias),
                                   static_cast<int64_t>(kind));
}

}  // namespace lockstep::kernels
