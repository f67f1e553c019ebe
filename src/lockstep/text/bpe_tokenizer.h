// Byte-level BPE of tokenizer.json files of Hugging Face, such as those of
// GPT-2, Qwen2.5 and LLaMA-3.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/text/tokenizer.h"

namespace lockstep::text {

struct BpeTokenizerSource {
  std::string json = {};  // tokenizer.json.
  std::string name = "tokenizer.json";
  // tokenizer_config.json: names the tokens that end and pad. Unset: the usual
  // names for the end, no padding.
  std::optional<std::string> config_json = {};
};

// Gives the ids of the package tokenizers; frame() is what its templates add
// around a text. Bytes that are not UTF-8 count as U+FFFD.
class BpeTokenizer final : public Tokenizer {
 public:
  // Throws FormatError for files that are damaged or of another kind.
  explicit BpeTokenizer(const BpeTokenizerSource& source);
  ~BpeTokenizer() override;

  // Throws FormatError when the file's regular expression takes too much work.
  std::vector<int64_t> encode(std::string_view text) const override;
  // Special tokens appear by their names.
  std::string decode(std::span<const int64_t> ids) const override;
  int64_t vocab_size() const override;
  int64_t eos() const override;
  std::optional<int64_t> pad() const override;
  TextFrame frame() const override;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

// `path`: a tokenizer.json, or a folder that holds one; a tokenizer_config.json
// beside it is read too. Throws ConfigError when there is none.
std::shared_ptr<const Tokenizer> open_tokenizer(
    const std::filesystem::path& path);

}  // namespace lockstep::text
