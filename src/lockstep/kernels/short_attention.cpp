#include "lockstep/kernels/short_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "lockstep/kernels/cuda_call.h"
#include "lockstep/kernels/head_gradients.h"
#include "lockstep/kernels/optional_tensor.h"
#include "lockstep/kernels/short_attention_request.h"

namespace lockstep::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

HeadStrides strides_of(const at::Tensor& heads) {
  return {.sample = heads.stride(0),
          .token = heads.stride(1),
          .head = heads.stride(2)};
}

// Results of the kernel, and what its backward needs.
struct Attended {
  at::Tensor out = {};
  at::Tensor log_sums = {};
};

ShortAttentionRequest request_of(const std::vector<at::Tensor>& heads,
                                 const Attended& attended) {
  const at::Tensor& queries = heads[0];
  ShortAttentionRequest request{
      .out = attended.out.mutable_data_ptr(),
      .log_sums = attended.log_sums.mutable_data_ptr<float>(),
      .num_samples = queries.size(0),
      .num_tokens = static_cast<int>(queries.size(1)),
      .num_heads = static_cast<int>(queries.size(2)),
      .type = element_type(queries)};
  for (size_t i = 0; i < heads.size(); ++i) {
    request.heads[i] = heads[i].const_data_ptr();
    request.strides[i] = strides_of(heads[i]);
  }
  return request;
}

Attended attend(const std::vector<at::Tensor>& heads) {
  const at::Tensor& queries = heads[0];
  Attended attended{
      .out = at::empty(queries.sizes(), queries.options()),
      .log_sums = at::empty({queries.size(0), queries.size(2), queries.size(1)},
                            queries.options().dtype(at::kFloat))};
  launch("lockstep_cuda_short_attention", request_of(heads, attended),
         queries.device());
  return attended;
}

// d_bias: undefined where none is wanted.
void attend_backward(const std::vector<at::Tensor>& heads,
                     const Attended& attended, const at::Tensor& gradient,
                     const std::vector<at::Tensor>& d_heads,
                     const at::Tensor& d_bias) {
  const at::Tensor d_out = with_head_strides(gradient);
  const at::Tensor dots = at::empty_like(attended.log_sums);
  ShortAttentionBackwardRequest request{
      .forward = request_of(heads, attended),
      .d_out = d_out.const_data_ptr(),
      .d_out_strides = strides_of(d_out),
      .dots = dots.mutable_data_ptr<float>(),
      .d_bias = mutable_data_or_null<float>(d_bias)};
  for (size_t i = 0; i < d_heads.size(); ++i) {
    request.d_heads[i] = d_heads[i].mutable_data_ptr();
    request.d_strides[i] = strides_of(d_heads[i]);
  }
  at::Tensor partial_sums;
  if (d_bias.defined()) {
    partial_sums =
        at::empty({heads[0].size(0), d_bias.numel()}, d_bias.options());
    request.partial_sums = partial_sums.mutable_data_ptr<float>();
  }
  launch("lockstep_cuda_short_attention_backward", request, d_out.device());
}

class ShortAttentionFunction
    : public torch::autograd::Function<ShortAttentionFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& queries,
                            const at::Tensor& keys, const at::Tensor& values) {
    const Attended attended = attend({queries, keys, values});
    context->save_for_backward(
        {queries, keys, values, attended.out, attended.log_sums});
    return attended.out;
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const std::vector<at::Tensor> heads(saved.begin(), saved.begin() + 3);
    std::vector<at::Tensor> d_heads;
    d_heads.reserve(heads.size());
    for (const at::Tensor& part : heads) {
      d_heads.push_back(at::empty(part.sizes(), part.options()));
    }
    attend_backward(heads, {.out = saved[3], .log_sums = saved[4]},
                    gradients[0], d_heads, {});
    return {d_heads[0], d_heads[1], d_heads[2]};
  }
};

class PackedShortAttentionFunction
    : public torch::autograd::Function<PackedShortAttentionFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv,
                            const OptionalTensor& bias) {
    const Attended attended = attend(qkv.unbind(2));
    context->save_for_backward({qkv, attended.out, attended.log_sums});
    context->saved_data["has_bias"] = bias.has_value();
    return attended.out;
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const at::Tensor d_qkv = at::empty(qkv.sizes(), qkv.options());
    at::Tensor d_bias;
    if (context->saved_data["has_bias"].toBool()) {
      d_bias = at::empty({3 * qkv.size(3) * qkv.size(4)},
                         qkv.options().dtype(at::kFloat));
    }
    attend_backward(qkv.unbind(2), {.out = saved[1], .log_sums = saved[2]},
                    gradients[0], d_qkv.unbind(2), d_bias);
    return {d_qkv, d_bias};
  }
};

bool fits(const at::Tensor& heads) {
  return is_on_gpu(heads) && heads.dim() == 4 && heads.numel() > 0 &&
         heads.size(3) == kShortAttentionSize &&
         heads.size(1) <= kShortAttentionTokens &&
         heads.size(0) * heads.size(2) <= std::numeric_limits<int32_t>::max() &&
         (heads.scalar_type() == at::kHalf ||
          heads.scalar_type() == at::kBFloat16) &&
         is_head_strided(heads);
}

bool device_fits() {
  return tensor::cuda_function<bool()>("lockstep_cuda_has_short_attention")();
}

}  // namespace

bool has_short_attention(const QueriesKeysValues& heads) {
  const auto fits_too = [&](const at::Tensor& other) {
    return fits(other) && other.sizes() == heads.queries.sizes() &&
           other.scalar_type() == heads.queries.scalar_type();
  };
  return fits(heads.queries) && fits_too(heads.keys) &&
         fits_too(heads.values) && device_fits();
}

at::Tensor short_attention(const QueriesKeysValues& heads) {
  return ShortAttentionFunction::apply(heads.queries, heads.keys, heads.values);
}

bool has_short_attention(const LinearResult& qkv) {
  return is_on_gpu(qkv.out) && qkv.out.dim() == 5 && qkv.out.size(2) == 3 &&
         fits(qkv.out.select(2, 0)) && device_fits();
}

at::Tensor short_attention(const LinearResult& qkv) {
  return PackedShortAttentionFunction::apply(qkv.out, optional(qkv.bias));
}

}  // namespace lockstep::kernels
