// Text as numbers and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::text {

// Tokens that a model expects around every text.
struct TextFrame {
  std::vector<int64_t> before = {};
  std::vector<int64_t> after = {};
};

// One tokenizer serves all threads: its methods change nothing.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::vector<int64_t> encode(std::string_view text) const = 0;

  // Ids that mean nothing are left out. The result is valid UTF-8: U+FFFD
  // stands for what is not.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;

  virtual int64_t vocab_size() const = 0;  // All ids are below it.
  virtual int64_t eos() const = 0;         // Ends a text.
  virtual std::optional<int64_t> pad() const = 0;

  // encode() leaves them out.
  virtual TextFrame frame() const { return {}; }
};

}  // namespace lockstep::text
