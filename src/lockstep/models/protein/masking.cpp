#include "lockstep/models/protein/masking.h"

#include <ATen/ATen.h>

#include <optional>

namespace lockstep::protein {
namespace {

constexpr int64_t kNumBlocks = 3;
constexpr int64_t kBlockSize = 5;

// Exactly max(1, floor(count * ratio)): those with the smallest draws.
at::Tensor hide_at_random(const at::Tensor& is_fragment, double ratio,
                          SampleRandom& random) {
  const int64_t width = is_fragment.size(1);
  const at::Tensor draws = random.uniform({width}).masked_fill(~is_fragment, 2);
  const at::Tensor order =
      std::get<1>(at::sort(draws, std::optional<bool>(true), /*dim=*/1));
  const at::Tensor count = is_fragment.sum(1, /*keepdim=*/true);
  const at::Tensor num_hidden =
      (count.to(at::kDouble) * ratio).floor().to(at::kLong).clamp_min(1);
  const at::Tensor is_first = at::arange(width, order.options()) < num_hidden;
  return at::zeros_like(is_fragment).scatter(1, order, is_first) & is_fragment;
}

at::Tensor hide_blocks(const at::Tensor& is_fragment, SampleRandom& random) {
  const at::Tensor count = is_fragment.sum(1, /*keepdim=*/true);
  const at::Tensor num_starts = (count - kBlockSize).clamp_min(0) + 1;
  const at::Tensor starts =
      (random.uniform({kNumBlocks}, at::kDouble) * num_starts)
          .to(at::kLong)
          .unsqueeze(2);
  const at::Tensor positions = at::arange(is_fragment.size(1), count.options());
  const at::Tensor is_inside =
      (positions >= starts) & (positions < starts + kBlockSize);
  return is_inside.any(1) & is_fragment;
}

}  // namespace

at::Tensor draw_hidden(const at::Tensor& is_fragment,
                       const MaskingConfig& config, SampleRandom& random) {
  return config.strategy == "block"
             ? hide_blocks(is_fragment, random)
             : hide_at_random(is_fragment, config.ratio, random);
}

}  // namespace lockstep::protein
