#include "lockstep/kernels/adaln_residual.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "lockstep/kernels/cuda_call.h"
#include "lockstep/kernels/optional_tensor.h"

namespace lockstep::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// In the order of the autograd function's arguments.
struct AdaLnTensors {
  at::Tensor x = {};
  at::Tensor branch = {};
  at::Tensor branch_bias = {};
  at::Tensor gate = {};
  at::Tensor shift = {};
  at::Tensor scale = {};
  at::Tensor weight = {};
  at::Tensor bias = {};
};

SampleRows sample_rows(const at::Tensor& rows) {
  if (!rows.defined()) return {};
  return {.data = rows.const_data_ptr(), .stride = rows.stride(0)};
}

AdaLnArguments arguments_of(const AdaLnTensors& tensors, double eps,
                            NormKind kind, ElementType type) {
  const at::Tensor& x = tensors.x;
  return {.branch = data_or_null(tensors.branch),
          .branch_bias = data_or_null<float>(tensors.branch_bias),
          .gate = sample_rows(tensors.gate),
          .shift = sample_rows(tensors.shift),
          .scale = sample_rows(tensors.scale),
          .weight = data_or_null<float>(tensors.weight),
          .bias = data_or_null<float>(tensors.bias),
          .has_scalar_weight =
              tensors.weight.defined() && tensors.weight.numel() == 1,
          .batch = x.size(0),
          .count = x.size(1),
          .size = x.size(2),
          .eps = static_cast<float>(eps),
          .kind = kind,
          .type = type};
}

// The type of branch, modulation and result.
at::ScalarType branch_type(const AdaLnTensors& tensors) {
  if (tensors.branch.defined()) return tensors.branch.scalar_type();
  if (tensors.shift.defined()) return tensors.shift.scalar_type();
  return tensors.x.scalar_type();
}

class AdaLnFunction : public torch::autograd::Function<AdaLnFunction> {
 public:
  // Returns normed and, with a branch, sum.
  static variable_list forward(
      AutogradContext* context, const at::Tensor& x,
      const OptionalTensor& branch, const OptionalTensor& branch_bias,
      const OptionalTensor& gate, const OptionalTensor& shift,
      const OptionalTensor& scale, const OptionalTensor& weight,
      const OptionalTensor& bias, double eps, int64_t kind) {
    const AdaLnTensors tensors{x,
                               branch.value_or(at::Tensor()),
                               branch_bias.value_or(at::Tensor()),
                               gate.value_or(at::Tensor()),
                               shift.value_or(at::Tensor()),
                               scale.value_or(at::Tensor()),
                               weight.value_or(at::Tensor()),
                               bias.value_or(at::Tensor())};
    const at::ScalarType type = branch_type(tensors);
    const bool is_layer = static_cast<NormKind>(kind) == NormKind::kLayer;
    const at::Tensor sum = tensors.branch.defined() ? at::empty_like(x) : x;
    const at::Tensor normed = at::empty(x.sizes(), x.options().dtype(type));
    const at::Tensor rstd = at::empty({x.size(0), x.size(1)}, x.options());
    const at::Tensor mean = is_layer ? at::empty_like(rstd) : at::Tensor();
    launch(
        "lockstep_cuda_adaln_residual",
        AdaLnForwardRequest{
            .arguments = arguments_of(tensors, eps, static_cast<NormKind>(kind),
                                      element_type(normed)),
            .x = x.const_data_ptr<float>(),
            .sum = tensors.branch.defined() ? sum.mutable_data_ptr<float>()
                                            : nullptr,
            .normed = normed.mutable_data_ptr(),
            .mean = mutable_data_or_null<float>(mean),
            .rstd = rstd.mutable_data_ptr<float>()},
        x.device());
    context->save_for_backward({sum, tensors.branch, tensors.branch_bias,
                                tensors.gate, tensors.shift, tensors.scale,
                                tensors.weight, tensors.bias, mean, rstd});
    context->saved_data["eps"] = eps;
    context->saved_data["kind"] = kind;
    context->set_materialize_grads(false);
    if (tensors.branch.defined()) return {normed, sum};
    return {normed};
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const AdaLnTensors tensors{saved[0], saved[1], saved[2], saved[3],
                               saved[4], saved[5], saved[6], saved[7]};
    const at::Tensor& mean = saved[8];
    const at::Tensor& rstd = saved[9];
    const at::Tensor& sum = tensors.x;
    const at::ScalarType type = branch_type(tensors);
    const at::TensorOptions options = sum.options();
    const at::Tensor d_normed =
        gradients[0].defined() ? gradients[0].to(type).contiguous()
                               : at::zeros(sum.sizes(), options.dtype(type));
    const at::Tensor d_sum = gradients.size() > 1 && gradients[1].defined()
                                 ? gradients[1].contiguous()
                                 : at::Tensor();
    const auto empty_rows = [&](const at::Tensor& rows) {
      return rows.defined() ? at::empty(rows.sizes(), rows.options())
                            : at::Tensor();
    };
    const int64_t size = sum.size(2);
    const auto empty_columns = [&](const at::Tensor& parameter) {
      return parameter.defined() ? at::empty({size}, options) : at::Tensor();
    };
    const at::Tensor d_x = at::empty_like(sum);
    const at::Tensor d_branch = empty_rows(tensors.branch);
    const at::Tensor d_gate = empty_rows(tensors.gate);
    const at::Tensor d_shift = empty_rows(tensors.shift);
    const at::Tensor d_scale = empty_rows(tensors.scale);
    at::Tensor d_weight = empty_columns(tensors.weight);
    const at::Tensor d_bias = empty_columns(tensors.bias);
    const at::Tensor d_branch_bias = empty_columns(tensors.branch_bias);
    const at::Tensor partial_sums = at::empty(
        {sum.size(0), adaln_blocks(sum.size(1)), kAdaLnSums, size}, options);
    launch("lockstep_cuda_adaln_residual_backward",
           AdaLnBackwardRequest{
               .arguments = arguments_of(
                   tensors, context->saved_data["eps"].toDouble(),
                   static_cast<NormKind>(context->saved_data["kind"].toInt()),
                   element_type(d_normed)),
               .d_sum = data_or_null<float>(d_sum),
               .d_normed = d_normed.const_data_ptr(),
               .sum = sum.const_data_ptr<float>(),
               .mean = data_or_null<float>(mean),
               .rstd = rstd.const_data_ptr<float>(),
               .d_x = d_x.mutable_data_ptr<float>(),
               .d_branch = mutable_data_or_null(d_branch),
               .partial_sums = partial_sums.mutable_data_ptr<float>(),
               .d_gate = mutable_data_or_null(d_gate),
               .d_shift = mutable_data_or_null(d_shift),
               .d_scale = mutable_data_or_null(d_scale),
               .d_weight = mutable_data_or_null<float>(d_weight),
               .d_bias = mutable_data_or_null<float>(d_bias),
               .d_branch_bias = mutable_data_or_null<float>(d_branch_bias)},
           sum.device());
    if (d_weight.defined() && tensors.weight.numel() == 1) {
      d_weight = d_weight.sum().view_as(tensors.weight);
    }
    return {d_x,     d_branch, d_branch_bias, d_gate, d_shift,
            d_scale, d_weight, d_bias,        {},     {}};
  }
};

// [B, D] with packed rows.
bool are_sample_rows(const at::Tensor& rows, const at::Tensor& x,
                     at::ScalarType type) {
  if (!rows.defined()) return true;
  constexpr uintptr_t kAlignment = 16;
  return rows.device() == x.device() && rows.scalar_type() == type &&
         rows.dim() == 2 && rows.size(0) == x.size(0) &&
         rows.size(1) == x.size(2) && rows.stride(1) == 1 &&
         rows.stride(0) % 8 == 0 &&
         reinterpret_cast<uintptr_t>(rows.const_data_ptr()) % kAlignment == 0;
}

bool is_float_parameter(const at::Tensor& parameter, const at::Tensor& x,
                        int64_t numel) {
  return !parameter.defined() ||
         (parameter.device() == x.device() && parameter.numel() == numel &&
          parameter.scalar_type() == at::kFloat && is_packed(parameter));
}

bool has_adaln_kernel(const AdaLnTensors& tensors) {
  const at::Tensor& x = tensors.x;
  if (!is_on_gpu(x) || x.scalar_type() != at::kFloat || x.dim() != 3 ||
      x.numel() == 0 || x.size(2) % 8 != 0 || x.size(2) > kMaxAdaLnWidth ||
      x.size(0) > 65535) {
    return false;
  }
  const at::ScalarType type = branch_type(tensors);
  if (tensors.branch.defined() && (!has_element_type(tensors.branch) ||
                                   tensors.branch.device() != x.device() ||
                                   tensors.branch.sizes() != x.sizes())) {
    return false;
  }
  const int64_t size = x.size(2);
  return are_sample_rows(tensors.gate, x, type) &&
         are_sample_rows(tensors.shift, x, type) &&
         are_sample_rows(tensors.scale, x, type) &&
         is_float_parameter(tensors.branch_bias, x, size) &&
         (is_float_parameter(tensors.weight, x, size) ||
          is_float_parameter(tensors.weight, x, 1)) &&
         is_float_parameter(tensors.bias, x, size);
}

at::Tensor norm_of(const at::Tensor& x, const ResidualNorm& norm) {
  if (norm.kind == NormKind::kRms) return rms_norm(x, norm.weight, norm.eps);
  return at::layer_norm(x, {x.size(-1)}, norm.weight, norm.bias, norm.eps);
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const int64_t size = x.size(-1);
  if (!weight.defined()) return at::rms_norm(x, size, /*weight=*/{}, eps);
  // The fused kernel needs both in the same type.
  const at::ScalarType type =
      at::promote_types(x.scalar_type(), weight.scalar_type());
  const at::Tensor scale = weight.to(type);
  return at::rms_norm(x.to(type), size,
                      scale.numel() == size ? scale : scale.expand({size}),
                      eps);
}

at::Tensor add_branch(const at::Tensor& x, const ResidualBranch& branch) {
  if (!branch.out.defined()) return x;
  const at::Tensor out =
      branch.bias.defined() ? branch.out + branch.bias : branch.out;
  return branch.gate.defined() ? x + branch.gate.unsqueeze(1) * out : x + out;
}

at::Tensor modulate(const at::Tensor& x, const Modulation& modulation) {
  if (!modulation.shift.defined()) return x;
  return x * (1 + modulation.scale.unsqueeze(1)) +
         modulation.shift.unsqueeze(1);
}

AdaLnResult adaln_residual(const at::Tensor& x, const ResidualBranch& branch,
                           const ResidualNorm& norm,
                           const Modulation& modulation) {
  const AdaLnTensors tensors{.x = x,
                             .branch = branch.out,
                             .branch_bias = branch.bias,
                             .gate = branch.gate,
                             .shift = modulation.shift,
                             .scale = modulation.scale,
                             .weight = norm.weight,
                             .bias = norm.bias};
  if (has_adaln_kernel(tensors)) {
    const auto results = AdaLnFunction::apply(
        x.contiguous(),
        optional(branch.out.defined() ? branch.out.contiguous() : branch.out),
        optional(tensors.branch_bias), optional(tensors.gate),
        optional(tensors.shift), optional(tensors.scale),
        optional(tensors.weight), optional(tensors.bias), norm.eps,
        static_cast<int64_t>(norm.kind));
    return {.sum = results.size() > 1 ? results[1] : x, .normed = results[0]};
  }
  const at::Tensor sum = add_branch(x, branch);
  return {.sum = sum, .normed = modulate(norm_of(sum, norm), modulation)};
}

}  // namespace lockstep::kernels
