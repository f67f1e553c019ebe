#include "lockstep/kernels/qk_norm_rope.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "lockstep/kernels/qk_norm_rope_request.h"
#include "lockstep/tensor/cuda_library.h"

namespace lockstep {
namespace {

bool has_kernel(const at::Tensor& qkv, const HeadNorms& norms,
                const RopeTable& rotations) {
  const at::ScalarType type = qkv.scalar_type();
  if (!qkv.is_cuda() || (type != at::kHalf && type != at::kBFloat16) ||
      !qkv.is_contiguous() || qkv.numel() == 0 ||
      qkv.size(-1) > kMaxTurnedHead || any_takes_gradient({qkv})) {
    return false;
  }
  for (const TokenNorm* norm : {&norms.of_queries, &norms.of_keys}) {
    if (norm->weight.scalar_type() != type || !norm->weight.is_contiguous() ||
        !norm->bias.is_contiguous() ||
        any_takes_gradient({norm->weight, norm->bias})) {
      return false;
    }
  }
  return rotations.cosines.scalar_type() == at::kFloat &&
         rotations.cosines.is_contiguous() && rotations.sines.is_contiguous();
}

void turn_on_cuda(const at::Tensor& qkv, const HeadNorms& norms,
                  const RopeTable& rotations) {
  const TokenNorm& queries = norms.of_queries;
  const TokenNorm& keys = norms.of_keys;
  const QkNormRopeRequest request{
      .qkv = qkv.mutable_data_ptr(),
      .weight = {queries.weight.const_data_ptr(), keys.weight.const_data_ptr()},
      .bias = {queries.bias.const_data_ptr(), keys.bias.const_data_ptr()},
      .eps = {static_cast<float>(queries.eps), static_cast<float>(keys.eps)},
      .cosines = rotations.cosines.const_data_ptr<float>(),
      .sines = rotations.sines.const_data_ptr<float>(),
      .num_tokens = qkv.size(0) * qkv.size(1),
      .num_places = rotations.cosines.size(0),
      .num_heads = static_cast<int>(qkv.size(3)),
      .size = static_cast<int>(qkv.size(4)),
      .type = qkv.scalar_type() == at::kHalf ? HalfType::kFloat16
                                             : HalfType::kBfloat16};
  const c10::impl::VirtualGuardImpl cuda(qkv.device().type());
  cuda_function<void(const QkNormRopeRequest*, void*)>(
      "lockstep_cuda_turn_heads")(
      &request, cuda.getStreamNativeHandle(cuda.getStream(qkv.device())));
}

at::Tensor normed_and_turned(const at::Tensor& x, const TokenNorm& norm,
                             const RopeTable& rotations) {
  const at::ScalarType wide = rotations.cosines.scalar_type();
  const at::Tensor normed =
      at::layer_norm(x.to(wide), {x.size(-1)}, norm.weight.to(wide),
                     norm.bias.to(wide), norm.eps);
  const int64_t places = rotations.cosines.size(0);
  return turn_heads(normed.view({-1, places, x.size(2), x.size(3)}), rotations)
      .view(x.sizes())
      .to(x.scalar_type());
}

}  // namespace

at::Tensor turn_heads(const at::Tensor& x, const RopeTable& rotations) {
  const at::Tensor partners =
      x.unflatten(-1, {2, 2, x.size(-1) / 4}).flip({-2}).flatten(-3);
  return at::addcmul(x * rotations.cosines, partners, rotations.sines);
}

QueriesAndKeys qk_norm_rope(const at::Tensor& qkv, const HeadNorms& norms,
                            const RopeTable& rotations) {
  const at::Tensor queries = qkv.select(2, 0);
  const at::Tensor keys = qkv.select(2, 1);
  if (has_kernel(qkv, norms, rotations)) {
    turn_on_cuda(qkv, norms, rotations);
    return {.queries = queries, .keys = keys};
  }
  return {.queries = normed_and_turned(queries, norms.of_queries, rotations),
          .keys = normed_and_turned(keys, norms.of_keys, rotations)};
}

}  // namespace lockstep
