#include "lockstep/text/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/text/added_tokens.h"
#include "lockstep/text/bpe_model.h"
#include "lockstep/text/pattern.h"
#include "lockstep/text/unicode.h"

namespace lockstep::text {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGpt2Split =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::vector<Pattern> make_splits(const TokenizerParts& parts) {
  std::vector<Pattern> splits;
  for (const std::string& split : parts.splits) splits.emplace_back(split);
  return splits;
}

// The vocabulary's own id wins.
std::vector<AddedToken> with_final_ids(const TokenizerParts& parts,
                                       const BpeModel& model) {
  std::vector<AddedToken> tokens = parts.added;
  for (AddedToken& token : tokens) {
    token.id = model.find(token.text).value_or(token.id);
  }
  return tokens;
}

std::vector<AddedToken> raw_only(std::vector<AddedToken> tokens) {
  std::erase_if(tokens, [](const AddedToken& t) { return t.is_normalized; });
  return tokens;
}

std::vector<AddedToken> normalized_only(std::vector<AddedToken> tokens,
                                        const TokenizerParts& parts) {
  std::erase_if(tokens, [](const AddedToken& t) { return !t.is_normalized; });
  for (AddedToken& token : tokens) {
    if (parts.uses_nfc) token.text = to_nfc(token.text);
  }
  return tokens;
}

}  // namespace

struct BpeTokenizer::Parts {
  explicit Parts(const TokenizerParts& parts)
      : model(parts),
        raw_tokens(raw_only(with_final_ids(parts, model))),
        normalized_tokens(normalized_only(with_final_ids(parts, model), parts)),
        splits(make_splits(parts)),
        uses_nfc(parts.uses_nfc),
        adds_space(parts.adds_space),
        frame(parts.frame) {
    if (parts.uses_gpt2_split) gpt2_split.emplace(kGpt2Split);
    for (const auto& [token, id] : parts.vocabulary) {
      bytes_by_id.insert_or_assign(id, token_bytes(token));
    }
    for (const AddedToken& token : with_final_ids(parts, model)) {
      // The package gives these back as it looks for them.
      const bool is_changed = token.is_normalized && uses_nfc;
      bytes_by_id.insert_or_assign(
          token.id, token_bytes(is_changed ? to_nfc(token.text) : token.text));
      added_ids.emplace(token.text, token.id);
    }
    for (const auto& [id, bytes] : bytes_by_id) {
      vocab_size = std::max(vocab_size, id + 1);
    }
    for (const auto* side : {&frame.before, &frame.after}) {
      for (const int64_t id : *side) {
        if (bytes_by_id.contains(id)) continue;
        throw FormatError(fmt::format(
            "{} is added around every text, but is not a token", id));
      }
    }
  }

  std::optional<int64_t> find(const std::string& token) const {
    const auto found = added_ids.find(token);
    return found == added_ids.end() ? model.find(token) : found->second;
  }

  // Text between added tokens, normalized.
  void encode_plain(std::string_view text, std::vector<int64_t>& ids) const {
    std::vector<std::string_view> pieces = {text};
    for (const Pattern& split : splits) {
      std::vector<std::string_view> smaller;
      for (const std::string_view piece : pieces) {
        const auto cut = split.cut(piece);
        smaller.insert(smaller.end(), cut.begin(), cut.end());
      }
      pieces = std::move(smaller);
    }
    for (const std::string_view piece : pieces) encode_piece(piece, ids);
  }

  void encode_piece(std::string_view piece, std::vector<int64_t>& ids) const {
    std::string spaced;
    if (adds_space && !piece.starts_with(' ')) {
      spaced = " " + std::string(piece);
      piece = spaced;
    }
    if (!gpt2_split) return model.encode_word(piece, ids);
    for (const std::string_view word : gpt2_split->cut(piece)) {
      model.encode_word(word, ids);
    }
  }

  BpeModel model;
  AddedTokens raw_tokens;
  AddedTokens normalized_tokens;
  std::vector<Pattern> splits;
  std::optional<Pattern> gpt2_split = {};
  bool uses_nfc = false;
  bool adds_space = false;
  TextFrame frame = {};
  std::unordered_map<int64_t, std::string> bytes_by_id = {};
  std::unordered_map<std::string, int64_t> added_ids = {};
  int64_t vocab_size = 0;
  int64_t eos = 0;
  std::optional<int64_t> pad = {};
};

namespace {

template <typename Find>
int64_t eos_of(const SpecialNames& names, const Find& find,
               const std::string& name) {
  if (names.eos) {
    const auto id = find(*names.eos);
    if (id) return *id;
    throw FormatError(fmt::format(
        "{}: has no token '{}', which tokenizer_config.json names as eos_token",
        name, *names.eos));
  }
  for (const char* usual :
       {"<|endoftext|>", "<|im_end|>", "</s>", "<|end_of_text|>"}) {
    if (const auto id = find(usual)) return *id;
  }
  throw FormatError(fmt::format(
      "{}: has no token that ends a text (<|endoftext|>, <|im_end|>, </s>, "
      "<|end_of_text|>); name it as eos_token in a tokenizer_config.json "
      "beside it",
      name));
}

BpeTokenizerSource read_source(const fs::path& path) {
  const fs::path file = fs::is_directory(path) ? path / "tokenizer.json" : path;
  if (!fs::is_regular_file(file)) {
    throw ConfigError(fmt::format(
        "--tokenizer_path {}: there is no file {}; it must be a tokenizer.json "
        "of Hugging Face or a folder that holds one",
        path.string(), file.string()));
  }
  BpeTokenizerSource source{.json = base::read_file(file),
                            .name = file.string()};
  const fs::path config = file.parent_path() / "tokenizer_config.json";
  if (fs::is_regular_file(config)) source.config_json = base::read_file(config);
  return source;
}

}  // namespace

BpeTokenizer::BpeTokenizer(const BpeTokenizerSource& source) {
  const TokenizerParts file = parse_tokenizer(source.json, source.name);
  SpecialNames names;
  if (source.config_json) {
    names = parse_tokenizer_config(*source.config_json,
                                   "tokenizer_config.json of " + source.name);
  }
  std::unique_ptr<Parts> parts;
  try {
    parts = std::make_unique<Parts>(file);
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}: {}", source.name, error.what()));
  }
  const auto find = [&](const std::string& token) {
    return parts->find(token);
  };
  parts->eos = eos_of(names, find, source.name);
  if (names.pad) parts->pad = find(*names.pad);
  parts_ = std::move(parts);
}

BpeTokenizer::~BpeTokenizer() = default;

std::vector<int64_t> BpeTokenizer::encode(std::string_view text) const {
  const std::string valid = lossy_utf8(text);
  std::vector<int64_t> ids;
  for (const TextPart& raw : parts_->raw_tokens.cut(valid)) {
    if (raw.id) {
      ids.push_back(*raw.id);
      continue;
    }
    const std::string normal =
        parts_->uses_nfc ? to_nfc(raw.text) : std::string(raw.text);
    for (const TextPart& part : parts_->normalized_tokens.cut(normal)) {
      if (part.id) {
        ids.push_back(*part.id);
      } else {
        parts_->encode_plain(part.text, ids);
      }
    }
  }
  return ids;
}

std::string BpeTokenizer::decode(std::span<const int64_t> ids) const {
  std::string bytes;
  for (const int64_t id : ids) {
    const auto found = parts_->bytes_by_id.find(id);
    if (found != parts_->bytes_by_id.end()) bytes += found->second;
  }
  return lossy_utf8(bytes);
}

int64_t BpeTokenizer::vocab_size() const { return parts_->vocab_size; }
int64_t BpeTokenizer::eos() const { return parts_->eos; }
std::optional<int64_t> BpeTokenizer::pad() const { return parts_->pad; }
TextFrame BpeTokenizer::frame() const { return parts_->frame; }

std::shared_ptr<const Tokenizer> open_tokenizer(const fs::path& path) {
  return std::make_shared<BpeTokenizer>(read_source(path));
}

}  // namespace lockstep::text
