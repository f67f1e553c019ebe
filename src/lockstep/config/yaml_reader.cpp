#include "lockstep/config/yaml_reader.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <system_error>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/config/scalar_text.h"
#include "lockstep/config/setting.h"
#include "lockstep/config/yaml_tree.h"
#include "lockstep/error.h"

namespace lockstep::config {
namespace {

using Kind = YamlNode::Kind;

// "a.b.c" as "a.b" and "c".
struct SplitPath {
  std::string section;
  std::string last;
};

SplitPath split_path(const std::string& path) {
  const auto dot = path.rfind('.');
  if (dot == std::string::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

// What stands there instead of a plain value.
std::string description(const YamlNode& node) {
  if (node.kind == Kind::kMap) return "a map";
  if (node.kind == Kind::kList) return "a list";
  if (node.kind == Kind::kNull) return "null";
  return "the quoted text " + shown(node.text) + "; remove the quotes";
}

// Walks one tree and collects the values in it.
class YamlReader {
 public:
  YamlReader(const Options& options, std::string_view file_name)
      : options_(options), file_name_(file_name) {}

  std::vector<Assignment> read(const YamlNode& root) {
    read_map(root, "");
    return std::move(assignments_);
  }

 private:
  void read_map(const YamlNode& map, const std::string& path);
  void read_entry(const YamlNode& node, const std::string& path);
  void read_setting(size_t index, const YamlNode& node);
  SettingScalar read_item(const Setting& setting, const YamlNode& node,
                          const std::string& key) const;
  std::optional<size_t> find(const std::string& path) const;
  bool is_section(const std::string& path) const;
  [[noreturn]] void unknown_key(const YamlNode& node,
                                const std::string& path) const;
  std::string where(YamlPlace place) const {
    return yaml_where(file_name_, place);
  }

  const Options& options_;
  std::string_view file_name_;
  std::vector<Assignment> assignments_;
  std::map<size_t, const YamlNode*> given_;  // By index of the setting.
};

void YamlReader::read_map(const YamlNode& map, const std::string& path) {
  std::map<std::string, YamlPlace> keys;
  for (const YamlNode& node : map.children) {
    const std::string key = normalized(node.key);
    const auto [earlier, is_new] = keys.emplace(key, node.key_place);
    if (!is_new) {
      throw ConfigError(fmt::format(
          "{}: key {} is there twice, first in line {}; remove one",
          where(node.key_place), shown(node.key), earlier->second.line));
    }
    read_entry(node, path.empty() ? key : fmt::format("{}.{}", path, key));
  }
}

void YamlReader::read_entry(const YamlNode& node, const std::string& path) {
  const auto setting = find(path);
  // A section may have the name of a setting: no setting takes a map.
  if (node.kind == Kind::kMap && !node.children.empty()) {
    read_map(node, path);
  } else if (setting) {
    read_setting(*setting, node);
  } else if (!is_section(path) ||
             (node.kind != Kind::kNull && node.kind != Kind::kMap)) {
    unknown_key(node, path);
  }
}

void YamlReader::read_setting(size_t index, const YamlNode& node) {
  const Setting& setting = options_.settings()[index];
  const ValueShape shape = setting.binding.shape;
  const auto [earlier, is_new] = given_.emplace(index, &node);
  if (!is_new) {
    throw ConfigError(fmt::format(
        "{}: {} is the same setting as {} in line {}; remove one",
        where(node.key_place), shown(node.key), shown(earlier->second->key),
        earlier->second->key_place.line));
  }
  SettingValue value;
  const bool null = node.kind == Kind::kNull && shape != ValueShape::kOne;
  const bool none = node.kind == Kind::kPlain && is_none(node.text) &&
                    shape == ValueShape::kOptional;
  if (node.kind == Kind::kList && shape == ValueShape::kList) {
    for (const YamlNode& item : node.children) {
      value.push_back(read_item(setting, item, node.key));
    }
  } else if (!null && !none) {
    value.push_back(read_item(setting, node, node.key));
  }
  assignments_.push_back({index, std::move(value), Source::kFile});
}

SettingScalar YamlReader::read_item(const Setting& setting,
                                    const YamlNode& node,
                                    const std::string& key) const {
  const bool is_text = setting.binding.kind == ScalarKind::kText;
  // An empty value has no position.
  const YamlPlace place = node.kind == Kind::kNull && !node.key.empty()
                              ? node.key_place
                              : node.place;
  const std::string at = fmt::format("{}: {}", where(place), key);
  if (node.kind == Kind::kPlain || (node.kind == Kind::kQuoted && is_text)) {
    if (auto item = parse_item(setting, node.text)) return *std::move(item);
    refuse_text(setting, at, node.text);
  }
  refuse(setting, at, description(node));
}

std::optional<size_t> YamlReader::find(const std::string& path) const {
  const auto& settings = options_.settings();
  for (size_t index = 0; index < settings.size(); ++index) {
    if (normalized(settings[index].key()) == path) return index;
  }
  const auto [section, last] = split_path(path);
  const auto word = options_.words().find(last);
  if (word == options_.words().end()) return std::nullopt;
  const std::string own =
      split_path(normalized(settings[word->second].key())).section;
  const bool in_any_section = own.empty() && section.find('.') == section.npos;
  if (section.empty() || section == own || in_any_section) return word->second;
  return std::nullopt;
}

bool YamlReader::is_section(const std::string& path) const {
  for (const Setting& setting : options_.settings()) {
    if (normalized(setting.key()).starts_with(path + ".")) return true;
  }
  return false;
}

void YamlReader::unknown_key(const YamlNode& node,
                             const std::string& path) const {
  const auto [section, last] = split_path(path);
  // "lr: {a: 1}"
  if (const auto parent = find(section); parent && !is_section(section)) {
    refuse(options_.settings()[*parent],
           fmt::format("{}: {}", where(node.key_place), section),
           "a map with the key " + shown(node.key));
  }
  std::vector<std::string> known;
  for (const Setting& setting : options_.settings()) {
    known.push_back(normalized(setting.key()));
  }
  for (const auto& [word, index] : options_.words()) known.push_back(word);
  auto near = base::nearest(path, known);
  if (!near) near = base::nearest(last, known);
  // A known name in a section where it does not belong.
  if (const auto word = options_.words().find(last);
      word != options_.words().end()) {
    near = options_.settings()[word->second].key();
  }
  throw ConfigError(fmt::format(
      "{}: unknown key {}; {}", where(node.key_place), shown(path),
      near ? fmt::format("did you mean {}?", *near)
           : "--help lists the settings, --print_config their keys"));
}

[[noreturn]] void cannot_read(const std::filesystem::path& path,
                              std::string_view why) {
  throw ConfigError(fmt::format("cannot read the settings file '{}': {}",
                                path.string(), why));
}

}  // namespace

std::vector<Assignment> read_yaml_text(const Options& options,
                                       std::string_view text,
                                       std::string_view file_name) {
  const YamlNode root = parse_yaml(text, file_name);
  return YamlReader(options, file_name).read(root);
}

std::vector<Assignment> read_yaml_file(const Options& options,
                                       const std::filesystem::path& path) {
  constexpr uintmax_t kLargestBytes = 10'000'000;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    cannot_read(path, "there is no such file; check the path");
  }
  if (error) cannot_read(path, error.message());
  if (std::filesystem::is_directory(status)) {
    cannot_read(path, "it is a folder; name a YAML file in it");
  }
  if (!std::filesystem::is_regular_file(status)) {
    cannot_read(path, "it is not a regular file");
  }
  const auto size = std::filesystem::file_size(path, error);
  if (error) cannot_read(path, error.message());
  if (size > kLargestBytes) {
    cannot_read(path, fmt::format("it has {} bytes, and settings fit in {}; "
                                  "is this the right file?",
                                  size, kLargestBytes));
  }
  std::string text;
  try {
    text = base::read_file(path);
  } catch (const IoError& failure) {
    throw ConfigError(fmt::format("settings file: {}", failure.what()));
  }
  return read_yaml_text(options, text, path.string());
}

}  // namespace lockstep::config
