// Finds the added tokens of a tokenizer in text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/text/tokenizer_file.h"

namespace lockstep::text {

// Text, or one token.
struct TextPart {
  std::string_view text = {};
  std::optional<int64_t> id = {};
};

// Safe to use from several threads at once.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  // The leftmost tokens, of several at a place the longest. Text parts are not
  // empty and point into the text.
  std::vector<TextPart> cut(std::string_view text) const;

 private:
  const AddedToken* token_at(std::string_view text) const;

  // By first byte, longest first.
  std::array<std::vector<AddedToken>, 256> tokens_;
};

}  // namespace lockstep::text
