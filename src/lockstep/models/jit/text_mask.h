// Which pixels of an image of text hold a token: masks [B, S, S].
#pragma once

#include <cstdint>

#include "lockstep/random.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::jit {

// Each mask, with `probability`, longer by a drawn number of places: padding,
// up to `longest` tokens.
at::Tensor padded_mask(const at::Tensor& mask, int64_t longest,
                       double probability, SampleRandom& random);

struct SampledLength {
  int64_t num_tokens = 1;  // Behind a prompt that is continued, too.
  int64_t limit = 1;       // Tokens of an image.
  bool continues_prompt = false;
};

// Where a sampled text is. `known`: the masks of the prompts.
at::Tensor sampled_mask(const at::Tensor& known, const SampledLength& length);

}  // namespace lockstep::jit
