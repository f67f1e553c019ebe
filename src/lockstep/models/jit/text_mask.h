// Which pixels of an image of text hold a token: masks [B, S, S].
#pragma once

#include <cstdint>

#include "lockstep/random.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::jit {

// Extends each mask, with `probability`, by a random number of padding tokens,
// up to `longest` in total.
at::Tensor padded_mask(const at::Tensor& mask, int64_t longest,
                       double probability, SampleRandom& random);

struct SampledLength {
  int64_t num_tokens = 1;  // In total; after the prompt if that is as long.
  int64_t limit = 1;       // Maximum tokens per image.
  bool continues_prompt = false;
};

// Masks of sampled texts. `known`: the masks of the prompts.
at::Tensor sampled_mask(const at::Tensor& known, const SampledLength& length);

}  // namespace lockstep::jit
