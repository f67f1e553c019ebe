#include "lockstep/text/tokenizer_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/utf8.h"
#include "lockstep/error.h"

namespace lockstep::text {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSupported =
    "supported is byte-level BPE as of GPT-2, Qwen2 and LLaMA-3: model BPE, "
    "normalizer NFC or none, pre-tokenizer ByteLevel or Split (Regex, "
    "Isolated) and then ByteLevel, post-processor ByteLevel, Bert, Roberta or "
    "Template, decoder ByteLevel";

// One file, for messages.
class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(fmt::format("{}: {}", name_, base::as_utf8(what)));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    fail(fmt::format("{}; {}", what, kSupported));
  }

  Json parse(std::string_view text) const {
    try {
      return Json::parse(text);
    } catch (const Json::exception& error) {
      fail(fmt::format("no JSON: {}", error.what()));
    }
  }

  // A null where there is none.
  static const Json& part(const Json& object, const char* key) {
    static const Json kNull;
    const auto found = object.find(key);
    return found == object.end() ? kNull : *found;
  }
  static std::string type(const Json& object) {
    return object.is_object() ? object.value("type", Json()).dump() : "null";
  }

  std::string text(const Json& object, const char* key) const {
    const Json& value = part(object, key);
    if (!value.is_string()) fail(fmt::format("\"{}\" is not a string", key));
    return value.get<std::string>();
  }
  std::optional<bool> flag(const Json& object, const char* key) const {
    const Json& value = part(object, key);
    if (value.is_null()) return {};
    if (!value.is_boolean()) fail(fmt::format("\"{}\" is not a bool", key));
    return value.get<bool>();
  }
  int64_t id(const Json& value) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= kMaxTokens) {
      fail(fmt::format(
          "the id {} is not an integer from 0 to {}",
          value.dump(-1, ' ', false, Json::error_handler_t::replace),
          kMaxTokens - 1));
    }
    return value.get<int64_t>();
  }

 private:
  const std::string& name_;
};

void read_normalizer(const Json& normalizer, const Reader& in,
                     TokenizerParts& parts) {
  if (normalizer.is_null()) return;
  const std::string type = Reader::type(normalizer);
  const Json& inner = Reader::part(normalizer, "normalizers");
  if (type == "\"NFC\"") {
    parts.uses_nfc = true;
  } else if (type == "\"Sequence\"" && inner.is_array()) {
    for (const Json& part : inner) {
      if (Reader::type(part) != "\"NFC\"") {
        in.refuse("a normalizer of type " + Reader::type(part));
      }
      parts.uses_nfc = true;
    }
  } else {
    in.refuse("a normalizer of type " + type);
  }
}

void read_split(const Json& split, const Reader& in, TokenizerParts& parts) {
  const Json& pattern = Reader::part(split, "pattern");
  if (!pattern.is_object() || !pattern.contains("Regex")) {
    in.refuse("a Split without a Regex");
  }
  if (in.text(split, "behavior") != "Isolated" ||
      in.flag(split, "invert").value_or(false)) {
    in.refuse("a Split that is not Isolated, or inverted");
  }
  parts.splits.push_back(in.text(pattern, "Regex"));
}

void read_byte_level(const Json& level, const Reader& in,
                     TokenizerParts& parts) {
  if (Reader::type(level) != "\"ByteLevel\"") {
    in.refuse("a pre-tokenizer of type " + Reader::type(level));
  }
  parts.adds_space = in.flag(level, "add_prefix_space").value_or(true);
  parts.uses_gpt2_split = in.flag(level, "use_regex").value_or(true);
}

void read_pre_tokenizer(const Json& whole, const Reader& in,
                        TokenizerParts& parts) {
  if (Reader::type(whole) != "\"Sequence\"") {
    return read_byte_level(whole, in, parts);
  }
  const Json& steps = Reader::part(whole, "pretokenizers");
  if (!steps.is_array() || steps.empty()) {
    in.refuse("a Sequence without pre-tokenizers");
  }
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    if (Reader::type(steps[i]) != "\"Split\"") {
      in.refuse("a pre-tokenizer of type " + Reader::type(steps[i]) +
                " before another");
    }
    read_split(steps[i], in, parts);
  }
  read_byte_level(steps.back(), in, parts);
}

void read_merges(const Json& merges, const Reader& in, TokenizerParts& parts) {
  if (!merges.is_array()) in.fail("\"merges\" is not a list");
  for (const Json& merge : merges) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
        merge[1].is_string()) {
      parts.merges.emplace_back(merge[0].get<std::string>(),
                                merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t gap = text.find(' ');
    if (gap == std::string::npos ||
        text.find(' ', gap + 1) != std::string::npos) {
      in.fail(fmt::format("merge {} is not a pair of strings",
                          parts.merges.size()));
    }
    parts.merges.emplace_back(text.substr(0, gap), text.substr(gap + 1));
  }
}

// What would change tokens in a way that this library does not know.
void check_model_options(const Json& model, const Reader& in) {
  for (const char* key :
       {"continuing_subword_prefix", "end_of_word_suffix", "unk_token"}) {
    const Json& value = Reader::part(model, key);
    if (!value.is_null() && value != "") {
      in.refuse(fmt::format("a model with \"{}\"", key));
    }
  }
  const Json& dropout = Reader::part(model, "dropout");
  if (!dropout.is_null() && dropout != 0) in.refuse("a model with \"dropout\"");
  if (in.flag(model, "byte_fallback").value_or(false)) {
    in.refuse("a model with \"byte_fallback\"");
  }
}

void read_model(const Json& model, const Reader& in, TokenizerParts& parts) {
  if (!model.is_object()) in.fail("there is no \"model\"");
  // Old files have no type; merges show that they are BPE.
  const bool is_bpe = model.contains("type") ? Reader::type(model) == "\"BPE\""
                                             : model.contains("merges");
  if (!is_bpe) in.refuse("a model of type " + Reader::type(model));
  check_model_options(model, in);
  const Json& vocabulary = Reader::part(model, "vocab");
  if (!vocabulary.is_object()) in.fail("\"vocab\" is not a JSON object");
  for (const auto& [token, id] : vocabulary.items()) {
    parts.vocabulary.emplace_back(token, in.id(id));
  }
  read_merges(Reader::part(model, "merges"), in, parts);
  parts.ignores_merges = in.flag(model, "ignore_merges").value_or(false);
}

void read_added(const Json& added, const Reader& in, TokenizerParts& parts) {
  if (added.is_null()) return;
  if (!added.is_array()) in.fail("\"added_tokens\" is not a list");
  for (const Json& token : added) {
    if (!token.is_object()) in.fail("an added token is not a JSON object");
    if (in.flag(token, "single_word").value_or(false)) {
      in.refuse("an added token with \"single_word\"");
    }
    const bool is_special = in.flag(token, "special").value_or(false);
    parts.added.push_back(
        {.id = in.id(Reader::part(token, "id")),
         .text = in.text(token, "content"),
         .is_normalized = in.flag(token, "normalized").value_or(!is_special),
         .takes_left = in.flag(token, "lstrip").value_or(false),
         .takes_right = in.flag(token, "rstrip").value_or(false)});
  }
}

// {"SpecialToken": {"id": "<s>"}}: its numbers stand in the table of the
// template.
void read_template_token(const Json& token, const Json& numbers,
                         const Reader& in, std::vector<int64_t>& side) {
  if (!token.is_object() || !numbers.is_object()) {
    in.fail("a template's token is not a JSON object");
  }
  const std::string name = in.text(token, "id");
  const Json& entry = Reader::part(numbers, name.c_str());
  if (!entry.is_object() || !Reader::part(entry, "ids").is_array()) {
    in.fail(fmt::format("a template's token '{}' has no ids", name));
  }
  for (const Json& id : Reader::part(entry, "ids")) side.push_back(in.id(id));
}

void read_template(const Json& whole, const Reader& in, TextFrame& frame) {
  const Json& single = Reader::part(whole, "single");
  if (!single.is_array()) in.fail("a template without \"single\"");
  size_t num_texts = 0;
  for (const Json& piece : single) {
    if (!piece.is_object()) in.fail("a template's piece is not a JSON object");
    if (piece.contains("Sequence")) {
      ++num_texts;
    } else {
      read_template_token(Reader::part(piece, "SpecialToken"),
                          Reader::part(whole, "special_tokens"), in,
                          num_texts == 0 ? frame.before : frame.after);
    }
  }
  if (num_texts != 1)
    in.refuse("a template without exactly one place for the text");
}

// {"cls": ["<s>", 0], "sep": ["</s>", 2]}
int64_t frame_token(const Json& whole, const char* key, const Reader& in) {
  const Json& pair = Reader::part(whole, key);
  if (!pair.is_array() || pair.size() != 2) {
    in.fail(fmt::format("\"{}\" is not a pair of a text and its id", key));
  }
  return in.id(pair[1]);
}

TextFrame read_frame(const Json& step, const Reader& in) {
  const std::string type = Reader::type(step);
  TextFrame frame;
  if (type == "\"TemplateProcessing\"") {
    read_template(step, in, frame);
  } else if (type == "\"RobertaProcessing\"" || type == "\"BertProcessing\"") {
    frame.before = {frame_token(step, "cls", in)};
    frame.after = {frame_token(step, "sep", in)};
  } else if (type != "\"ByteLevel\"") {
    in.refuse("a post-processor of type " + type);
  }
  return frame;
}

// That of ByteLevel only changes the reported offsets of a token.
void read_post_processor(const Json& whole, const Reader& in,
                         TokenizerParts& parts) {
  if (whole.is_null()) return;
  std::vector<Json> steps = {whole};
  if (Reader::type(whole) == "\"Sequence\"") {
    const Json& inner = Reader::part(whole, "processors");
    if (!inner.is_array()) in.fail("a Sequence without processors");
    steps.assign(inner.begin(), inner.end());
  }
  for (const Json& step : steps) {
    const TextFrame frame = read_frame(step, in);
    // A later template goes around what an earlier one made.
    parts.frame.before.insert(parts.frame.before.begin(), frame.before.begin(),
                              frame.before.end());
    parts.frame.after.insert(parts.frame.after.end(), frame.after.begin(),
                             frame.after.end());
  }
}

// A text, or a table with "content".
std::optional<std::string> special_name(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) {
    return special_name(Reader::part(value, "content"));
  }
  return {};
}

}  // namespace

TokenizerParts parse_tokenizer(std::string_view json, const std::string& name) {
  const Reader in(name);
  const Json file = in.parse(json);
  if (!file.is_object()) in.fail("not a JSON object of a tokenizer's parts");
  TokenizerParts parts;
  read_model(Reader::part(file, "model"), in, parts);
  read_normalizer(Reader::part(file, "normalizer"), in, parts);
  read_pre_tokenizer(Reader::part(file, "pre_tokenizer"), in, parts);
  const std::string decoder = Reader::type(Reader::part(file, "decoder"));
  if (decoder != "\"ByteLevel\"") in.refuse("a decoder of type " + decoder);
  read_added(Reader::part(file, "added_tokens"), in, parts);
  read_post_processor(Reader::part(file, "post_processor"), in, parts);
  return parts;
}

SpecialNames parse_tokenizer_config(std::string_view json,
                                    const std::string& name) {
  const Reader in(name);
  const Json file = in.parse(json);
  if (!file.is_object()) in.fail("no table of settings");
  return {.eos = special_name(Reader::part(file, "eos_token")),
          .pad = special_name(Reader::part(file, "pad_token"))};
}

}  // namespace lockstep::text
