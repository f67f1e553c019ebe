// Byte pair encoding of single words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/text/tokenizer_file.h"

namespace lockstep::text {

// The bytes that a token of a byte-level vocabulary stands for: each of its
// characters is one byte. A token with any other character stands for itself.
std::string token_bytes(std::string_view token);

// Safe to use from several threads at once.
class BpeModel {
 public:
  // Throws FormatError for merges of tokens outside the vocabulary.
  explicit BpeModel(const TokenizerParts& parts);

  // Merges neighbours of the lowest rank first, of several the leftmost, in
  // O(n log n). Bytes without a token are left out.
  void encode_word(std::string_view word, std::vector<int64_t>& ids) const;

  std::optional<int64_t> find(const std::string& token) const;

 private:
  struct Merge {
    int64_t rank = 0;
    int64_t id = 0;
  };
  struct Word;

  const Merge* merge_of(int64_t left, int64_t right) const;

  std::unordered_map<std::string, int64_t> vocabulary_;
  std::unordered_map<std::string, int64_t> whole_words_;  // By their bytes.
  std::array<int64_t, 256> byte_ids_{};                   // -1: none.
  std::unordered_map<uint64_t, Merge> merges_;
};

}  // namespace lockstep::text
