#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <set>

#include "lockstep/datasets/texts/generated_text.h"
#include "lockstep/datasets/texts/text_data.h"
#include "lockstep/error.h"
#include "lockstep/models/jit/text_pixels.h"
#include "lockstep/text/byte_tokenizer.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;
using Ids = std::vector<int64_t>;

// Numbers of three digits, and an end above the vocabulary, as Qwen's.
class LargeTokenizer final : public text::Tokenizer {
 public:
  std::vector<int64_t> encode(std::string_view text) const override {
    Ids ids;
    for (const char c : text) ids.push_back(static_cast<uint8_t>(c) * 590);
    return ids;
  }
  std::string decode(std::span<const int64_t>) const override { return {}; }
  int64_t vocab_size() const override { return 151'643; }
  int64_t eos() const override { return 151'645; }
  std::optional<int64_t> pad() const override { return {}; }
};

jit::TextPixels bytes_of(int64_t side, std::optional<int64_t> max_tokens = {}) {
  return {std::make_shared<text::ByteTokenizer>(),
          {.image_size = side, .max_tokens = max_tokens}};
}

std::shared_ptr<const jit::TextPixels> shared_bytes(int64_t side) {
  return std::make_shared<jit::TextPixels>(bytes_of(side));
}

TEST(TextPixels, PutTheLowestDigitIntoRedWhichComesLast) {
  const jit::TextPixels pixels(std::make_shared<LargeTokenizer>(),
                               {.image_size = 4});
  const jit::TextImage image = pixels.draw(Ids{151'645, 66'051});
  EXPECT_EQ(image.pixels[0][0][0].item<int>(), 151'645 / 65536);
  EXPECT_EQ(image.pixels[1][0][0].item<int>(), 151'645 / 256 % 256);
  EXPECT_EQ(image.pixels[2][0][0].item<int>(), 151'645 % 256);
  EXPECT_EQ(image.pixels[0][0][1].item<int>(), 1);
  EXPECT_EQ(image.pixels[1][0][1].item<int>(), 2);
  EXPECT_EQ(image.pixels[2][0][1].item<int>(), 3);
  // White where there is no token and none that pads.
  EXPECT_EQ(image.pixels.flatten(1).slice(1, 2).min().item<int>(), 255);
  EXPECT_EQ(image.mask.flatten().slice(0, 0, 2).sum().item<int>(), 2);
  EXPECT_EQ(image.mask.sum().item<int>(), 2);
}

TEST(TextPixels, GiveTheTokensBack) {
  const jit::TextPixels pixels(std::make_shared<LargeTokenizer>(),
                               {.image_size = 8});
  Ids ids;
  for (int64_t i = 0; i < 64; ++i) ids.push_back(i * 2'300);
  EXPECT_EQ(pixels.ids_of(pixels.draw(ids).pixels), ids);
  // The end lies above the vocabulary and ends all the same; other numbers
  // there mean nothing.
  const Ids odd = {5, 151'644, 7, 151'645, 9};
  EXPECT_EQ(pixels.ids_of(pixels.draw(odd).pixels), (Ids{5, 7}));
}

TEST(TextPixels, LeaveWhatPadsOut) {
  const jit::TextPixels pixels = bytes_of(4);
  const jit::TextImage image = pixels.draw(Ids{97, 257, 98});
  EXPECT_EQ(pixels.ids_of(image.pixels), (Ids{97, 98}));
}

TEST(TextPixels, EndEveryTextAlsoAtTheLimit) {
  const jit::TextPixels pixels = bytes_of(2);
  EXPECT_EQ(pixels.encode(""), (Ids{256}));
  EXPECT_EQ(pixels.encode("ab"), (Ids{97, 98, 256}));
  EXPECT_EQ(pixels.encode("abc"), (Ids{97, 98, 99, 256}));
  EXPECT_EQ(pixels.encode("abcd"), (Ids{97, 98, 99, 256}));
  EXPECT_EQ(pixels.encode("abcdefgh"), (Ids{97, 98, 99, 256}));
}

TEST(TextPixels, MaxTokensShortensImageAndMaskAlike) {
  const jit::TextPixels pixels = bytes_of(4, 5);
  const jit::TextImage image = pixels.draw(pixels.encode("abcdefgh"));
  EXPECT_EQ(image.mask.sum().item<int>(), 5);
  EXPECT_EQ(pixels.ids_of(image.pixels), (Ids{97, 98, 99, 100}));
  EXPECT_EQ(image.pixels[2].flatten()[5].item<int>(), 1);  // 257 pads.
  EXPECT_THROW(bytes_of(4, 17), ConfigError);
  EXPECT_THROW(pixels.draw(Ids(6, 1)), ConfigError);
}

TEST(TextData, JoinsPromptAndAnswer) {
  const text::TextItem pair{.prompt = "p", .text = "a"};
  EXPECT_EQ(texts::target_text(pair, {}), "p\na");
  EXPECT_EQ(texts::target_text({.text = "t"}, {}), "t");
  const texts::TextShape conditional{.is_conditional = true};
  EXPECT_EQ(texts::target_text(pair, conditional), "a");
  EXPECT_EQ(texts::prompt_text("p", conditional), "p");
  const std::string chat =
      "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a "
      "helpful assistant.<|im_end|>\n<|im_start|>user\np<|im_end|>\n"
      "<|im_start|>assistant\n";
  EXPECT_EQ(texts::target_text(pair, {.uses_chat_template = true}),
            chat + "a<|im_end|>\n");
  EXPECT_EQ(texts::prompt_text(
                "p", {.is_conditional = true, .uses_chat_template = true}),
            chat);
}

TEST(TextData, GivesTextsAsImages) {
  const TempDir folder;
  const std::string path =
      folder.write("a.json", R"([{"prompt": "one", "answer": "two"}])");
  const auto pixels = shared_bytes(4);
  const auto sample = texts::open_text_sets(path, pixels, {}).train->get(0, 0);
  ASSERT_EQ(sample.size(), 2U);
  EXPECT_EQ(sample[0].scalar_type(), at::kByte);
  EXPECT_EQ(pixels->tokenizer().decode(pixels->ids_of(sample[0])), "one\ntwo");
  EXPECT_EQ(sample[1].sum().item<int>(), 8);
  const auto pair =
      texts::open_text_sets(path, pixels, {.is_conditional = true})
          .train->get(0, 0);
  ASSERT_EQ(pair.size(), 3U);
  EXPECT_EQ(pixels->tokenizer().decode(pixels->ids_of(pair[0])), "two");
  EXPECT_EQ(pixels->tokenizer().decode(pixels->ids_of(pair[2])), "one");
}

TEST(TextData, HoldsEvery100thTextBack) {
  const TempDir folder;
  std::string lines;
  for (int i = 0; i < 250; ++i) lines += std::to_string(i) + "\n";
  const std::string path = folder.write("a.txt", lines);
  const auto pixels = shared_bytes(4);
  const texts::TextSets sets = texts::open_text_sets(path, pixels, {});
  EXPECT_EQ(sets.train->size(), 248);
  ASSERT_EQ(sets.validation->size(), 2);
  const auto held = sets.validation->get(1, 0);
  EXPECT_EQ(pixels->tokenizer().decode(pixels->ids_of(held[0])), "199");
  // Too few to hold any back.
  const std::string few = folder.write("few.txt", "a\nb\n");
  EXPECT_EQ(texts::open_text_sets(few, pixels, {}).validation, nullptr);
}

TEST(TextData, TakesTheFolderValBesideTrain) {
  const TempDir folder;
  for (const char* name : {"train", "val", "train_ft", "val_ft"}) {
    std::filesystem::create_directory(folder.path() / name);
    folder.write(
        std::string(name) + "/a.json",
        R"([{"prompt": ")" + std::string(name) + R"(", "answer": "x"}])");
  }
  for (const std::string name : {"", "_ft"}) {
    for (const char* end : {"", "/"}) {
      const texts::TextSets sets = texts::open_text_sets(
          (folder.path() / ("train" + name)).string() + end, shared_bytes(4),
          {.is_conditional = true});
      EXPECT_EQ(sets.train->size(), 1);
      EXPECT_EQ(sets.validation->size(), 1);
      EXPECT_EQ(sets.prompts, std::vector<std::string>{"val" + name});
    }
  }
}

TEST(TextData, RefusesWhatItCannotUse) {
  const TempDir folder;
  const std::string path = folder.write("a.txt", "alone\n");
  const auto pixels = shared_bytes(4);
  EXPECT_THROW(texts::open_text_sets(path, pixels, {.is_conditional = true}),
               ConfigError);
  EXPECT_THROW(texts::open_text_sets("builtin:words", pixels, {}), ConfigError);
  EXPECT_THROW(texts::open_text_sets(folder.path() / "none", pixels, {}),
               ConfigError);
  EXPECT_THROW(texts::open_text_sets(folder.write("b.json", "[3]"), pixels, {}),
               FormatError);
}

TEST(GeneratedText, FillsItsRoomWithSentencesOfItsOwn) {
  const texts::GeneratedTextConfig config{.max_bytes = 255, .seed = 1};
  std::set<std::string> texts;
  for (int64_t i = 0; i < 2'000; ++i) {
    const std::string text = texts::generated_text(config, i);
    EXPECT_LE(text.size(), 255U);
    EXPECT_GT(text.size(), 180U);
    EXPECT_TRUE(text.ends_with('.')) << text;
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), 2'000U);
  EXPECT_EQ(texts::generated_text(config, 7), texts::generated_text(config, 7));
  EXPECT_NE(texts::generated_text({.seed = 2}, 7),
            texts::generated_text({.seed = 1}, 7));
}

TEST(GeneratedText, IsASetWithoutFiles) {
  const auto pixels = shared_bytes(16);
  const texts::TextSets sets =
      texts::open_text_sets("builtin:text", pixels, {.is_conditional = true});
  EXPECT_EQ(sets.train->size(), 400'000);
  const auto sample = sets.train->get(5, 0);
  const auto text = pixels->tokenizer().decode(pixels->ids_of(sample[0]));
  const auto prompt = pixels->tokenizer().decode(pixels->ids_of(sample[2]));
  EXPECT_TRUE(text.starts_with(prompt)) << text;
  EXPECT_LT(prompt.size(), text.size());
}

}  // namespace
}  // namespace lockstep
