#include "lockstep/kernels/attention.h"

#include <ATen/ATen.h>

#include "lockstep/kernels/short_attention.h"

namespace lockstep::kernels {
namespace {

// cuDNN's kernels compute tiles of 128 tokens. The kernel for few tokens is
// faster where those would be filled to less than three quarters.
bool are_tiles_badly_filled(int64_t num_tokens) {
  constexpr int64_t kTile = 128;
  const int64_t padded = (num_tokens + kTile - 1) / kTile * kTile;
  return 4 * num_tokens * num_tokens < 3 * padded * padded;
}

}  // namespace

at::Tensor attention(const QueriesKeysValues& heads) {
  if (are_tiles_badly_filled(heads.queries.size(1)) &&
      has_short_attention(heads)) {
    return short_attention(heads);
  }
  // Heads are not copied: the kernels take any strides except the last.
  return at::scaled_dot_product_attention(heads.queries.transpose(1, 2),
                                          heads.keys.transpose(1, 2),
                                          heads.values.transpose(1, 2))
      .transpose(1, 2);
}

at::Tensor attention(const LinearResult& qkv) {
  // It saves the packing of gradients as well.
  if (has_short_attention(qkv)) return short_attention(qkv);
  return attention(qkv_heads(qkv));
}

}  // namespace lockstep::kernels
