// Texts to learn from, in files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::text {

// A text, or the answer to a prompt.
struct TextItem {
  std::optional<std::string> prompt = {};
  std::string text = {};
};

// `path` is one of
//   .txt    one text per line
//   .json   a list of items, or one item
//   .jsonl  one item per line
//   a folder of such files, in the order of their names.
// An item is a text, {"text"}, {"prompt", "answer"}, or {"messages": [{"role",
// "content"}, ...]}, whose last message of the assistant is the answer to those
// before it. Empty texts are left out. Throws ConfigError for any other path or
// when there is no text, FormatError with path and line for damaged files.
std::vector<TextItem> read_text_files(const std::filesystem::path& path);

// The items of one file: `name` ends as above and names it in errors.
std::vector<TextItem> parse_text_file(std::string_view content,
                                      const std::string& name);

// Whether the path is a text file, or a folder that holds one.
bool holds_texts(const std::filesystem::path& path);

}  // namespace lockstep::text
