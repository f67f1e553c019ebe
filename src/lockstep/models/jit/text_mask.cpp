#include "lockstep/models/jit/text_mask.h"

#include <torch/torch.h>

namespace lockstep::jit {

at::Tensor padded_mask(const at::Tensor& mask, int64_t longest,
                       double probability, SampleRandom& random) {
  const at::Tensor own = mask.flatten(1).sum(1).to(at::kFloat);
  const at::Tensor is_padded = random.uniform({}) < probability;
  const at::Tensor more = (static_cast<double>(longest) - own).clamp_min(0) *
                          random.uniform({}) * is_padded;
  const at::Tensor places =
      torch::arange(mask[0].numel(), own.options()).unsqueeze(0);
  return (places < (own + more.ceil()).unsqueeze(1))
      .view(mask.sizes())
      .to(mask.scalar_type());
}

at::Tensor sampled_mask(const at::Tensor& known, const SampledLength& length) {
  const at::Tensor places =
      torch::arange(known[0].numel(), known.options().dtype(at::kLong));
  at::Tensor counts =
      torch::full({known.size(0), 1}, length.num_tokens, places.options());
  if (length.continues_prompt) {
    const at::Tensor begun = known.ne(0).flatten(1).sum(1, /*keepdim=*/true);
    counts = torch::where(begun < length.num_tokens, counts,
                          begun + length.num_tokens);
  }
  return (places < counts.clamp_max(length.limit)).view(known.sizes());
}

}  // namespace lockstep::jit
