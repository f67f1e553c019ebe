#include "lockstep/text/text_files.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

std::vector<std::string> shown(const std::vector<text::TextItem>& items) {
  std::vector<std::string> texts;
  for (const text::TextItem& item : items) {
    texts.push_back(item.prompt ? *item.prompt + " -> " + item.text
                                : item.text);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(TextFiles, ReadEveryKindOfItem) {
  const std::string items =
      R"("one", {"text": "two"}, {"prompt": "p", "answer": "a"}, {"text": ""},
         {"messages": [{"role": "system", "content": "s"},
                       {"role": "user", "content": "u"},
                       {"role": "assistant", "content": "x"}]},
         {"messages": [{"role": "user", "content": "q"}]})";
  EXPECT_EQ(shown(text::parse_text_file("[" + items + "]", "a.json")),
            (Texts{"one", "two", "p -> a", "s\nu -> x", "q"}));
  EXPECT_EQ(shown(text::parse_text_file(R"({"text": "alone"})", "a.json")),
            (Texts{"alone"}));
  EXPECT_EQ(
      shown(text::parse_text_file("{\"text\": \"x\"}\n\n\"y\"", "a.jsonl")),
      (Texts{"x", "y"}));
  EXPECT_EQ(shown(text::parse_text_file("a b\r\n\n \nc", "a.txt")),
            (Texts{"a b", "c"}));
}

TEST(TextFiles, TakeTheFilesOfAFolderByName) {
  const TempDir folder;
  folder.write("b.txt", "second\n");
  folder.write("a.json", R"(["first"])");
  folder.write("c.jsonl", R"("third")");
  folder.write("notes.md", "no text to learn");
  EXPECT_TRUE(text::holds_texts(folder.path()));
  EXPECT_EQ(shown(text::read_text_files(folder.path())),
            (Texts{"first", "second", "third"}));
}

std::string text_refusal(const std::string& content, const std::string& name) {
  return testing::refusal<FormatError>(
      [&] { text::parse_text_file(content, name); });
}

TEST(TextFiles, SayWhereAFileIsDamaged) {
  const auto begins = [](const std::string& text, const std::string& with) {
    EXPECT_TRUE(text.starts_with(with)) << text;
  };
  begins(text_refusal("\"ok\"\n{\"text\": 3}\n", "d/a.jsonl"),
         "d/a.jsonl:2: \"text\" is not a string");
  begins(text_refusal("\"ok\"\n\n{\n", "a.jsonl"), "a.jsonl:3: no JSON");
  begins(text_refusal("[\"ok\", 5]", "a.json"), "a.json: item 1: neither");
  begins(text_refusal("[\"ok\",\n", "a.json"), "a.json: no JSON");
  begins(text_refusal(R"([{"title": "x"}])", "a.json"),
         "a.json: item 0: no known");
  begins(text_refusal(R"([{"prompt": "x"}])", "a.json"),
         "a.json: item 0: \"answer\"");
  begins(text_refusal(R"({"messages": [{"role": "user"}]})", "a.json"),
         "a.json: \"content\" is not a string");
  begins(text_refusal("[\"\xff\"]", "a.json"), "a.json: no JSON");
}

TEST(TextFiles, SayWhatIsUsable) {
  const TempDir folder;
  folder.write("image.png", "x");
  folder.write("empty.txt", "\n\n");
  EXPECT_FALSE(text::holds_texts(folder.path() / "image.png"));
  EXPECT_THROW(text::read_text_files(folder.path() / "image.png"), ConfigError);
  EXPECT_THROW(text::read_text_files(folder.path() / "absent"), ConfigError);
  EXPECT_THROW(text::read_text_files(folder.path() / "empty.txt"), ConfigError);
}

}  // namespace
}  // namespace lockstep
