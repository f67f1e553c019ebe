// A YAML text as a tree of maps, lists and scalars with their places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::config {

struct YamlPlace {
  int line = 1;  // Counted from 1, as editors do.
  int column = 1;
};

struct YamlNode {
  enum class Kind { kNull, kPlain, kQuoted, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text = {};  // For a scalar.
  YamlPlace place = {};
  std::string key = {};  // For an entry of a map.
  YamlPlace key_place = {};
  std::vector<YamlNode> children = {};  // For a list or map, in order.
};

// "file:line:column"
std::string yaml_where(std::string_view file_name, YamlPlace place);

// Parses one document with a map at the top; an empty text is an empty map.
// Throws ConfigError with file, line and column. Anchors, aliases and tags are
// not accepted: a settings file needs none, and an alias may expand without
// end.
YamlNode parse_yaml(std::string_view text, std::string_view file_name);

}  // namespace lockstep::config
