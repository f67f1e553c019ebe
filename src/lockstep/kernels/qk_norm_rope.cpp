#include "lockstep/kernels/qk_norm_rope.h"

#include <ATen/ATen.h>

#include "lockstep/kernels/cuda_call.h"
#include "lockstep/kernels/qk_norm_rope_request.h"

namespace lockstep::kernels {
namespace {

bool has_qk_norm_rope_kernel(const at::Tensor& qkv, const QkNorms& norms,
                             const RopeTable& table) {
  const at::ScalarType type = qkv.scalar_type();
  if (!qkv.is_cuda() || (type != at::kHalf && type != at::kBFloat16) ||
      !qkv.is_contiguous() || qkv.numel() == 0 ||
      qkv.size(-1) > kMaxRopeHeadSize || any_takes_gradient({qkv})) {
    return false;
  }
  for (const TokenNorm* norm : {&norms.queries, &norms.keys}) {
    if (norm->weight.scalar_type() != type || !norm->weight.is_contiguous() ||
        !norm->bias.is_contiguous() ||
        any_takes_gradient({norm->weight, norm->bias})) {
      return false;
    }
  }
  return table.cos.scalar_type() == at::kFloat && table.cos.is_contiguous() &&
         table.sin.is_contiguous();
}

void norm_and_rotate_on_cuda(const at::Tensor& qkv, const QkNorms& norms,
                             const RopeTable& table) {
  const TokenNorm& queries = norms.queries;
  const TokenNorm& keys = norms.keys;
  const QkNormRopeRequest request{
      .qkv = qkv.mutable_data_ptr(),
      .weight = {queries.weight.const_data_ptr(), keys.weight.const_data_ptr()},
      .bias = {queries.bias.const_data_ptr(), keys.bias.const_data_ptr()},
      .eps = {static_cast<float>(queries.eps), static_cast<float>(keys.eps)},
      .cos = table.cos.const_data_ptr<float>(),
      .sin = table.sin.const_data_ptr<float>(),
      .num_tokens = qkv.size(0) * qkv.size(1),
      .num_positions = table.cos.size(0),
      .num_heads = static_cast<int>(qkv.size(3)),
      .size = static_cast<int>(qkv.size(4)),
      .type = qkv.scalar_type() == at::kHalf ? HalfType::kFloat16
                                             : HalfType::kBfloat16};
  launch("lockstep_cuda_qk_norm_rope", request, qkv.device());
}

at::Tensor norm_and_rotate(const at::Tensor& x, const TokenNorm& norm,
                           const RopeTable& table) {
  const at::ScalarType wide = table.cos.scalar_type();
  const at::Tensor normed =
      at::layer_norm(x.to(wide), {x.size(-1)}, norm.weight.to(wide),
                     norm.bias.to(wide), norm.eps);
  const int64_t positions = table.cos.size(0);
  return apply_rope(normed.view({-1, positions, x.size(2), x.size(3)}), table)
      .view(x.sizes())
      .to(x.scalar_type());
}

}  // namespace

QueriesAndKeys qk_norm_rope(const at::Tensor& qkv, const QkNorms& norms,
                            const RopeTable& table) {
  const at::Tensor queries = qkv.select(2, 0);
  const at::Tensor keys = qkv.select(2, 1);
  if (has_qk_norm_rope_kernel(qkv, norms, table)) {
    norm_and_rotate_on_cuda(qkv, norms, table);
    return {.queries = queries, .keys = keys};
  }
  return {.queries = norm_and_rotate(queries, norms.queries, table),
          .keys = norm_and_rotate(keys, norms.keys, table)};
}

}  // namespace lockstep::kernels
