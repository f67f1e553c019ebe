// The tokenizer without a file: every byte is a token.
#pragma once

#include "lockstep/text/tokenizer.h"

namespace lockstep::text {

class ByteTokenizer final : public Tokenizer {
 public:
  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  int64_t vocab_size() const override { return 258; }
  int64_t eos() const override { return 256; }
  std::optional<int64_t> pad() const override { return 257; }
};

}  // namespace lockstep::text
