#include "lockstep/text/bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "lockstep/error.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int64_t>;

// Bytes a to e and space, three merges, one token that ends.
Json small_file() {
  return {
      {"model",
       {{"type", "BPE"},
        {"vocab",
         {{"a", 0},
          {"b", 1},
          {"c", 2},
          {"\u0120", 3},
          {"ab", 4},
          {"abc", 5},
          {"\u0120a", 6}}},
        {"merges", {"a b", Json::array({"ab", "c"}), "\u0120 a"}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"added_tokens",
       {{{"id", 7}, {"content", "<|endoftext|>"}, {"special", true}}}}};
}

text::BpeTokenizer tokenizer_of(const Json& file) {
  return text::BpeTokenizer({.json = file.dump()});
}

Json template_of(Json single) {
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"special_tokens", {{"<s>", {{"ids", {2, 1}}}}}}};
}

std::string refusal_after(const std::function<void(Json&)>& change) {
  Json file = small_file();
  change(file);
  return testing::refusal<FormatError>([&] { tokenizer_of(file); });
}

TEST(BpeTokenizer, MergesTheLowestRankFirst) {
  const text::BpeTokenizer tokenizer = tokenizer_of(small_file());
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{5}));
  EXPECT_EQ(tokenizer.encode("abab"), (Ids{4, 4}));
  // "a b" has the lower rank, so the space stays alone.
  EXPECT_EQ(tokenizer.encode(" ab"), (Ids{3, 4}));
  EXPECT_EQ(tokenizer.encode(" ac"), (Ids{6, 2}));
  EXPECT_EQ(tokenizer.decode(Ids{6, 2, 99}), " ac");
  // No token stands for d.
  EXPECT_EQ(tokenizer.encode("adb"), (Ids{4}));
}

TEST(BpeTokenizer, TakesAddedTokensWhole) {
  const text::BpeTokenizer tokenizer = tokenizer_of(small_file());
  EXPECT_EQ(tokenizer.encode("a<|endoftext|>b"), (Ids{0, 7, 1}));
  EXPECT_EQ(tokenizer.decode(Ids{0, 7, 1}), "a<|endoftext|>b");
  EXPECT_EQ(tokenizer.eos(), 7);
  EXPECT_EQ(tokenizer.pad(), std::nullopt);
  EXPECT_EQ(tokenizer.vocab_size(), 8);
}

TEST(BpeTokenizer, ReadsTheTokensThatEndAndPadBesideIt) {
  const testing::TempDir folder;
  folder.write("tokenizer.json", small_file().dump());
  folder.write("tokenizer_config.json",
               R"({"eos_token": {"content": "abc"}, "pad_token": "c"})");
  const auto tokenizer = text::open_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->eos(), 5);
  EXPECT_EQ(tokenizer->pad(), 2);
  folder.write("tokenizer_config.json", R"({"eos_token": "nowhere"})");
  EXPECT_THROW(text::open_tokenizer(folder.path()), FormatError);
  EXPECT_THROW(text::open_tokenizer(folder.path() / "absent"), ConfigError);
}

TEST(BpeTokenizer, TellsWhatStandsAroundAText) {
  Json file = small_file();
  EXPECT_TRUE(tokenizer_of(file).frame().before.empty());
  const Json begin = {{"SpecialToken", {{"id", "<s>"}}}};
  const Json text = {{"Sequence", {{"id", "A"}}}};
  file["post_processor"] = {
      {"type", "Sequence"},
      {"processors", {{{"type", "ByteLevel"}}, template_of({begin, text})}}};
  const text::BpeTokenizer tokenizer = tokenizer_of(file);
  EXPECT_EQ(tokenizer.frame().before, (Ids{2, 1}));
  EXPECT_TRUE(tokenizer.frame().after.empty());
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{5}));
  file["post_processor"] = template_of({text, begin});
  EXPECT_EQ(tokenizer_of(file).frame().after, (Ids{2, 1}));
}

TEST(BpeTokenizer, SaysWhatIsSupportedWhenAFileIsOfAnotherKind) {
  const std::vector<std::function<void(Json&)>> changes = {
      [](Json& file) { file["model"]["type"] = "WordPiece"; },
      [](Json& file) { file["model"]["type"] = "Unigram"; },
      [](Json& file) { file["model"]["unk_token"] = "a"; },
      [](Json& file) { file["model"]["dropout"] = 0.5; },
      [](Json& file) { file["normalizer"] = {{"type", "Lowercase"}}; },
      [](Json& file) { file["pre_tokenizer"] = {{"type", "Whitespace"}}; },
      [](Json& file) { file["pre_tokenizer"] = nullptr; },
      [](Json& file) { file["decoder"] = {{"type", "WordPiece"}}; },
      [](Json& file) { file["post_processor"] = {{"type", "Other"}}; },
      [](Json& file) { file["added_tokens"][0]["single_word"] = true; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    const std::string text = refusal_after(changes[i]);
    EXPECT_NE(text.find("supported is byte-level BPE"), std::string::npos)
        << i << ": " << text;
  }
}

TEST(BpeTokenizer, RefusesDamagedFiles) {
  const std::vector<std::function<void(Json&)>> changes = {
      [](Json& file) { file = "text"; },
      [](Json& file) { file.erase("model"); },
      [](Json& file) { file["model"]["vocab"]["a"] = -1; },
      [](Json& file) { file["model"]["vocab"]["a"] = 1 << 24; },
      [](Json& file) { file["model"]["vocab"]["a"] = 0.5; },
      [](Json& file) { file["model"]["merges"].push_back("a b c"); },
      [](Json& file) { file["model"]["merges"].push_back("a z"); },
      [](Json& file) { file["model"]["merges"].push_back("b c"); },
      [](Json& file) { file["model"]["merges"] = 3; },
      [](Json& file) { file["added_tokens"][0].erase("content"); },
      [](Json& file) { file["added_tokens"] = Json::array(); },
      [](Json& file) { file["post_processor"] = {{"type", "Sequence"}}; },
      [](Json& file) {
        file["post_processor"] = {{"type", "TemplateProcessing"}};
      },
      [](Json& file) {
        file["post_processor"] = template_of({{{"SpecialToken", 3}}});
      },
      [](Json& file) {
        file["post_processor"] =
            template_of({{{"SpecialToken", {{"id", "absent"}}}}});
      },
      [](Json& file) { file["post_processor"] = template_of({3}); },
      [](Json& file) {
        file["post_processor"] = {
            {"type", "BertProcessing"}, {"cls", {"a", 0}}, {"sep", {"x", 99}}};
      },
      [](Json& file) { file["post_processor"] = template_of(Json::array()); },
      [](Json& file) {
        file["post_processor"] = {{"type", "RobertaProcessing"}};
      },
      [](Json& file) {
        file["pre_tokenizer"] = {{"type", "Sequence"},
                                 {"pretokenizers",
                                  {{{"type", "Split"},
                                    {"pattern", {{"Regex", "("}}},
                                    {"behavior", "Isolated"}},
                                   {{"type", "ByteLevel"}}}}};
      }};
  for (size_t i = 0; i < changes.size(); ++i) {
    const std::string text = refusal_after(changes[i]);
    EXPECT_TRUE(text.starts_with("tokenizer.json: ")) << i << ": " << text;
  }
  EXPECT_THROW(text::BpeTokenizer({.json = "{"}), FormatError);
}

TEST(BpeTokenizer, CountsBytesThatAreNoTextAsReplacements) {
  Json file = small_file();
  // U+FFFD as the bytes ef bf bd of the alphabet.
  file["model"]["vocab"].update(
      {{"\u00ef", 10}, {"\u00bf", 11}, {"\u00bd", 12}});
  const text::BpeTokenizer tokenizer = tokenizer_of(file);
  EXPECT_EQ(tokenizer.encode("a\xff"
                             "b"),
            (Ids{0, 10, 11, 12, 1}));
  EXPECT_EQ(tokenizer.decode(Ids{10, 11}), "\xef\xbf\xbd");
}

// One word: no pattern cuts it.
TEST(BpeTokenizer, EncodesALongWordInLittleTime) {
  const text::BpeTokenizer tokenizer = tokenizer_of(small_file());
  std::string word;
  for (int i = 0; i < 100'000; ++i) word += "abc";
  // Processor time, with room for sanitizers: in the square of its length it
  // would take hours.
  const std::clock_t begin = std::clock();
  EXPECT_EQ(tokenizer.encode(word), Ids(100'000, 5));
  EXPECT_LT(std::clock() - begin, 60 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace lockstep
