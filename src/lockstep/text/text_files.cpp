#include "lockstep/text/text_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kItems =
    "an item is a text, {\"text\"}, {\"prompt\", \"answer\"} or "
    "{\"messages\": [{\"role\", \"content\"}, ...]}";

constexpr const char* kUsable =
    "usable are .txt (a text per line), .json (a list of items), .jsonl (an "
    "item per line) and a folder of such files; ";

bool is_text_file(const fs::path& path) {
  constexpr std::array<std::string_view, 3> kEndings = {".txt", ".json",
                                                        ".jsonl"};
  const std::string ending = path.extension().string();
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw FormatError(fmt::format("{}: {}; {}", where, why, kItems));
}

Json parse_json(std::string_view text, const std::string& where) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    refuse(where, fmt::format("no JSON: {}", error.what()));
  }
}

std::string text_of(const Json& object, const char* key,
                    const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    refuse(where, fmt::format("\"{}\" is not a string", key));
  }
  return found->get<std::string>();
}

TextItem from_messages(const Json& messages, const std::string& where) {
  if (!messages.is_array() || messages.empty()) {
    refuse(where, "\"messages\" is not a list");
  }
  std::vector<std::string> contents;
  for (const Json& message : messages) {
    if (!message.is_object()) refuse(where, "a message is not a JSON object");
    contents.push_back(text_of(message, "content", where));
    if (text_of(message, "role", where) != "assistant") continue;
    // An earlier answer is part of what the last one answers.
    if (&message != &messages.back()) continue;
    const std::string answer = contents.back();
    contents.pop_back();
    return {.prompt = base::join(contents, "\n"), .text = answer};
  }
  return {.text = base::join(contents, "\n")};
}

TextItem from_json(const Json& item, const std::string& where) {
  if (item.is_string()) return {.text = item.get<std::string>()};
  if (!item.is_object()) refuse(where, "neither a string nor a JSON object");
  if (item.contains("text")) return {.text = text_of(item, "text", where)};
  if (item.contains("prompt") || item.contains("answer")) {
    return {.prompt = text_of(item, "prompt", where),
            .text = text_of(item, "answer", where)};
  }
  if (item.contains("messages")) return from_messages(item["messages"], where);
  refuse(where, "no known key");
}

std::vector<TextItem> parse_list(std::string_view content,
                                 const std::string& name) {
  const Json file = parse_json(content, name);
  if (!file.is_array()) return {from_json(file, name)};
  std::vector<TextItem> items;
  for (size_t i = 0; i < file.size(); ++i) {
    items.push_back(from_json(file[i], fmt::format("{}: item {}", name, i)));
  }
  return items;
}

template <typename Parse>
std::vector<TextItem> parse_lines(std::string_view content,
                                  const Parse& parse) {
  std::vector<TextItem> items;
  size_t number = 0;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!base::trim(line).empty()) items.push_back(parse(line, number));
  }
  return items;
}

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file() && is_text_file(entry.path())) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<TextItem> parse_text_file(std::string_view content,
                                      const std::string& name) {
  std::vector<TextItem> items;
  if (name.ends_with(".json")) {
    items = parse_list(content, name);
  } else if (name.ends_with(".jsonl")) {
    items = parse_lines(content, [&](std::string_view line, size_t number) {
      const std::string where = fmt::format("{}:{}", name, number);
      return from_json(parse_json(line, where), where);
    });
  } else {
    items = parse_lines(content, [](std::string_view line, size_t) {
      return TextItem{.text = std::string(line)};
    });
  }
  std::erase_if(items, [](const TextItem& item) { return item.text.empty(); });
  return items;
}

std::vector<TextItem> read_text_files(const fs::path& path) {
  if (!fs::exists(path)) {
    throw ConfigError(fmt::format("{}: there is no such file or folder; {}{}",
                                  path.string(), kUsable, kItems));
  }
  if (!holds_texts(path)) {
    throw ConfigError(
        fmt::format("{}: no text files; {}{}", path.string(), kUsable, kItems));
  }
  std::vector<TextItem> items;
  for (const fs::path& file : files_of(path)) {
    auto more = parse_text_file(base::read_file(file), file.string());
    std::move(more.begin(), more.end(), std::back_inserter(items));
  }
  if (items.empty()) {
    throw ConfigError(fmt::format("{}: holds no text", path.string()));
  }
  return items;
}

bool holds_texts(const fs::path& path) {
  if (fs::is_directory(path)) return !files_of(path).empty();
  return fs::is_regular_file(path) && is_text_file(path);
}

}  // namespace lockstep::text
