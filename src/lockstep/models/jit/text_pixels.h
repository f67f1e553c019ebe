// Tokens as the pixels of an image, and back.
//
// A token's number in base 256 is its colour: the lowest digit red, then green,
// then blue. Images hold blue first, as those of the Python project PixelDLM,
// and their pixels follow each other row by row.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/tensor/tensor.h"
#include "lockstep/text/tokenizer.h"

namespace lockstep::jit {

struct TextPixelsConfig {
  int64_t image_size = 64;
  std::optional<int64_t> max_tokens = {};  // Unset: all pixels.
};

struct TextImage {
  at::Tensor pixels = {};  // uint8 [3, S, S].
  at::Tensor mask = {};    // uint8 [S, S]: 1 where a token is.
};

// Thread-safe.
class TextPixels {
 public:
  // Throws ConfigError when max_tokens does not fit into the image.
  TextPixels(std::shared_ptr<const text::Tokenizer> tokenizer,
             const TextPixelsConfig& config);

  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  int64_t limit() const { return limit_; }  // Maximum tokens per image.

  // The text's tokens and EOS. A text that is too long is truncated, and its
  // last token becomes EOS.
  std::vector<int64_t> encode(std::string_view text) const;

  // Pixels without a token have the colour of the padding token, or white.
  // Throws ConfigError for more tokens than the limit.
  TextImage draw(std::span<const int64_t> ids) const;

  // Tokens of uint8 [3, S, S] on the host, up to EOS. Padding and pixels that
  // are not tokens are skipped.
  std::vector<int64_t> ids_of(const at::Tensor& pixels) const;

 private:
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  int64_t side_;
  int64_t limit_;
};

}  // namespace lockstep::jit
