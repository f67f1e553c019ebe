#include "lockstep/kernels/qk_rms_rope.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "lockstep/kernels/adaln_residual.h"
#include "lockstep/kernels/cuda_call.h"
#include "lockstep/kernels/head_gradients.h"
#include "lockstep/kernels/optional_tensor.h"
#include "lockstep/kernels/qk_rms_rope_request.h"

namespace lockstep::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

QkRmsArguments arguments_of(const at::Tensor& qkv, const at::Tensor& queries,
                            const at::Tensor& keys, const at::Tensor& rope,
                            double eps) {
  const auto epsilon = static_cast<float>(eps);
  return {
      .qkv = qkv.const_data_ptr(),
      .weight = {queries.const_data_ptr<float>(), keys.const_data_ptr<float>()},
      .eps = {epsilon, epsilon},
      .rope = rope.const_data_ptr<float>(),
      .num_samples = qkv.size(0),
      .num_tokens = qkv.size(1),
      .num_heads = static_cast<int>(qkv.size(3)),
      .size = static_cast<int>(qkv.size(4)),
      .type = element_type(qkv)};
}

class QkRmsRopeFunction : public torch::autograd::Function<QkRmsRopeFunction> {
 public:
  // rope: real, [N, size / 2, 2]
  static variable_list forward(AutogradContext* context, const at::Tensor& qkv,
                               const OptionalTensor& bias,
                               const at::Tensor& queries,
                               const at::Tensor& keys, const at::Tensor& rope,
                               double eps) {
    const at::Tensor q = at::empty(
        {qkv.size(0), qkv.size(1), qkv.size(3), qkv.size(4)}, qkv.options());
    const at::Tensor k = at::empty_like(q);
    const at::Tensor rstd =
        at::empty({qkv.size(0), qkv.size(1), 2, qkv.size(3)},
                  qkv.options().dtype(at::kFloat));
    launch("lockstep_cuda_qk_rms_rope",
           QkRmsRopeRequest{
               .arguments = arguments_of(qkv, queries, keys, rope, eps),
               .out = {q.mutable_data_ptr(), k.mutable_data_ptr()},
               .rstd = rstd.mutable_data_ptr<float>()},
           qkv.device());
    context->save_for_backward({qkv, queries, keys, rope, rstd});
    context->saved_data["eps"] = eps;
    context->saved_data["has_bias"] = bias.has_value();
    return {q, k, qkv.select(2, 2)};
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const at::Tensor& rstd = saved[4];
    const at::Tensor d_qkv = at::empty_like(qkv);
    const at::Tensor d_queries = at::empty_like(saved[1]);
    const at::Tensor d_keys = at::empty_like(saved[2]);
    const int64_t blocks =
        qk_rms_blocks(qkv.size(0) * qkv.size(1), qkv.size(3));
    const at::Tensor partial_sums =
        at::empty({2, blocks, qkv.size(4)}, rstd.options());
    at::Tensor d_bias;
    at::Tensor partial_bias_sums;
    if (context->saved_data["has_bias"].toBool()) {
      const int64_t width = 3 * qkv.size(3) * qkv.size(4);
      d_bias = at::empty({width}, rstd.options());
      partial_bias_sums = at::empty({blocks, width}, rstd.options());
    }
    QkRmsRopeBackwardRequest request{
        .arguments = arguments_of(qkv, saved[1], saved[2], saved[3],
                                  context->saved_data["eps"].toDouble()),
        .rstd = rstd.const_data_ptr<float>(),
        .d_qkv = d_qkv.mutable_data_ptr(),
        .d_weight = {d_queries.mutable_data_ptr<float>(),
                     d_keys.mutable_data_ptr<float>()},
        .partial_sums = partial_sums.mutable_data_ptr<float>(),
        .d_bias = mutable_data_or_null<float>(d_bias),
        .partial_bias_sums = mutable_data_or_null<float>(partial_bias_sums)};
    const HeadGradients d_out(gradients, request.d_out, request.strides);
    launch("lockstep_cuda_qk_rms_rope_backward", request, qkv.device());
    return {d_qkv, d_bias, d_queries, d_keys, {}, {}};
  }
};

// What the kernel does not fit is left to ATen, which reports wrong shapes.
bool has_qk_rms_rope_kernel(const at::Tensor& qkv, const QkRmsNorms& norms,
                            const RopeTable& table) {
  if (!is_on_gpu(qkv) || qkv.dim() != 5 || qkv.size(2) != 3) return false;
  const int64_t head_size = qkv.size(4);
  const auto is_weight = [&](const at::Tensor& weight) {
    return weight.defined() && weight.device() == qkv.device() &&
           weight.numel() == head_size && weight.scalar_type() == at::kFloat &&
           is_packed(weight);
  };
  const auto is_table = [&](const at::Tensor& complex) {
    return complex.defined() && complex.device() == qkv.device() &&
           complex.scalar_type() == at::kComplexFloat &&
           complex.is_contiguous() && complex.size(0) == qkv.size(1) &&
           complex.numel() == qkv.size(1) * head_size / 2;
  };
  return qkv.numel() > 0 &&
         qkv.numel() <= std::numeric_limits<int32_t>::max() &&
         has_element_type(qkv) && is_packed(qkv) &&
         has_qk_rms_rope(head_size) && is_weight(norms.queries) &&
         is_weight(norms.keys) && is_table(table.complex);
}

}  // namespace

QueriesKeysValues qk_rms_rope(const LinearResult& qkv, const QkRmsNorms& norms,
                              const RopeTable& table) {
  if (has_qk_rms_rope_kernel(qkv.out, norms, table)) {
    const auto heads = QkRmsRopeFunction::apply(
        qkv.out, optional(qkv.bias), norms.queries, norms.keys,
        at::view_as_real(table.complex), norms.eps);
    return {.queries = heads[0], .keys = heads[1], .values = heads[2]};
  }
  const auto parts = with_bias_gradient(qkv).unbind(2);
  return {.queries =
              apply_rope(rms_norm(parts[0], norms.queries, norms.eps), table),
          .keys = apply_rope(rms_norm(parts[1], norms.keys, norms.eps), table),
          .values = parts[2]};
}

}  // namespace lockstep::kernels
