// Sentences made by a small grammar: texts without files.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::texts {

struct GeneratedTextConfig {
  // Bytes that a text may take. It stops at the last sentence that fits, but
  // has at least one.
  int64_t max_bytes = 255;
  uint64_t seed = 0;  // Which texts.
};

// Text `index` of the set. Simple English: people and animals, what they do,
// where and when.
std::string generated_text(const GeneratedTextConfig& config, int64_t index);

}  // namespace lockstep::texts
