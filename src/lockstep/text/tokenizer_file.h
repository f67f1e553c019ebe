// Reads tokenizer.json and tokenizer_config.json of Hugging Face.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/text/tokenizer.h"

namespace lockstep::text {

// A text that is one token wherever it occurs.
struct AddedToken {
  int64_t id = 0;
  std::string text = {};
  bool is_normalized = false;  // Looked for after normalization.
  bool takes_left = false;     // White space before it is part of it.
  bool takes_right = false;
};

// Byte-level BPE, the kind of GPT-2, Qwen2 and LLaMA-3.
struct TokenizerParts {
  bool uses_nfc = false;
  std::vector<std::string> splits = {};  // Regular expressions, in order.
  bool adds_space = false;               // Before each piece without one.
  bool uses_gpt2_split = false;          // After the space was added.
  std::vector<std::pair<std::string, int64_t>> vocabulary = {};
  std::vector<std::pair<std::string, std::string>> merges = {};
  bool ignores_merges = false;  // A whole word of the vocabulary is one token.
  std::vector<AddedToken> added = {};
  TextFrame frame = {};
};

struct SpecialNames {
  std::optional<std::string> eos = {};
  std::optional<std::string> pad = {};
};

// Ids are at least 0 and below this: three bytes.
constexpr int64_t kMaxTokens = int64_t{1} << 24;

// Both throw FormatError, which begins with `name`, for a file that is damaged
// or of another kind.
TokenizerParts parse_tokenizer(std::string_view json, const std::string& name);
SpecialNames parse_tokenizer_config(std::string_view json,
                                    const std::string& name);

}  // namespace lockstep::text
