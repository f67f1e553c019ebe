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

TEST(TokenizerInterop, IdsAndTextsEqualThoseOfThePackageTokenizers) {
  const testing::TempDir folder;
  const auto python =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/tokenizer_reference.py",
                    folder.path().string()},
                   {.timeout_seconds = 200});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  for (const char* name :
       {"gpt2", "gpt2_space", "qwen2", "qwen2_space", "qwen2_added",
        "gpt2_added", "whole_words", "missing_bytes"}) {
    SCOPED_TRACE(name);
    const auto tokenizer = open_tokenizer(folder.path() / name);
    const Json cases =
        Json::parse(read_file(folder.path() / name / "cases.json"));
    ASSERT_GT(cases.size(), 1000U);
    for (const Json& made : cases) {
      const auto ids = made["ids"].get<std::vector<int64_t>>();
      EXPECT_EQ(tokenizer->decode(ids), made["decoded"].get<std::string>())
          << made;
      if (!made.contains("text")) continue;
      const auto text = made["text"].get<std::string>();
      EXPECT_EQ(tokenizer->encode(text), ids) << Json(text);
    }
    EXPECT_EQ(tokenizer->eos(), 0);
  }
}

}  // namespace
}  // namespace lockstep
