// Tokenizer files give the ids and texts of the package tokenizers; the other
// side is python/tokenizer_reference.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/files.h"
#include "lockstep/text/bpe_tokenizer.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// What a model gets: the text's ids and those around it.
std::vector<int64_t> with_frame(const text::Tokenizer& tokenizer,
                                const std::string& text) {
  const text::TextFrame frame = tokenizer.frame();
  std::vector<int64_t> ids = frame.before;
  const auto inner = tokenizer.encode(text);
  ids.insert(ids.end(), inner.begin(), inner.end());
  ids.insert(ids.end(), frame.after.begin(), frame.after.end());
  return ids;
}

TEST(TokenizerInterop, IdsAndTextsEqualThoseOfThePackageTokenizers) {
  const testing::TempDir folder;
  const auto python =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/tokenizer_reference.py",
                    folder.path().string()});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  for (const char* name :
       {"gpt2", "gpt2_space", "qwen2", "qwen2_space", "qwen2_added",
        "gpt2_added", "whole_words", "missing_bytes", "llama3", "gpt2_framed",
        "roberta"}) {
    SCOPED_TRACE(name);
    const auto tokenizer = text::open_tokenizer(folder.path() / name);
    const Json cases =
        Json::parse(base::read_file(folder.path() / name / "cases.json"));
    ASSERT_GT(cases.size(), 1000U);
    for (const Json& made : cases) {
      const auto ids = made["ids"].get<std::vector<int64_t>>();
      EXPECT_EQ(tokenizer->decode(ids), made["decoded"].get<std::string>())
          << made;
      if (!made.contains("text")) continue;
      const auto text = made["text"].get<std::string>();
      EXPECT_EQ(tokenizer->encode(text), ids) << Json(text);
      if (!made.contains("framed")) continue;
      EXPECT_EQ(with_frame(*tokenizer, text),
                made["framed"].get<std::vector<int64_t>>())
          << Json(text);
    }
    const bool is_llama = std::string_view(name) == "llama3";
    EXPECT_EQ(cases.size() == 10'000, is_llama);
    EXPECT_EQ(tokenizer->decode(std::vector{tokenizer->eos()}),
              is_llama ? "<|end_of_text|>" : "<|endoftext|>");
    EXPECT_EQ(tokenizer->frame().before.size(),
              is_llama || std::string_view(name) == "roberta" ? 1U
              : std::string_view(name) == "gpt2_framed"       ? 2U
                                                              : 0U);
  }
}

}  // namespace
}  // namespace lockstep
