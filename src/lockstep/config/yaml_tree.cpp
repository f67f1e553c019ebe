#include "lockstep/config/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "lockstep/base/utf8.h"
#include "lockstep/config/scalar_text.h"
#include "lockstep/error.h"

namespace lockstep::config {
namespace {

YamlPlace place_of(const YAML::Mark& mark) {
  return {std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
}

// Builds the tree from the parser's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string_view file_name) : file_name_(file_name) {}

  YamlNode take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++num_documents_ > 1) {
      fail(mark,
           "a second document starts here ('---'); a settings file holds one");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    place_node({.text = "null", .place = place_of(mark)});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "aliases ('*name') are not supported; write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    check(mark, tag, anchor);
    place_node(
        {.kind = tag == "!" ? YamlNode::Kind::kQuoted : YamlNode::Kind::kPlain,
         .text = value,
         .place = place_of(mark)});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  // An open list or map, and the key that waits for its value.
  struct Open {
    YamlNode node;
    std::optional<YamlNode> key;

    bool wants_key() const {
      return node.kind == YamlNode::Kind::kMap && !key.has_value();
    }
  };

  [[noreturn]] void fail(const YAML::Mark& mark, std::string_view what) const {
    throw ConfigError(
        fmt::format("{}: {}", yaml_where(file_name_, place_of(mark)), what));
  }

  void check(const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) const {
    if (anchor != 0) {
      fail(mark, "anchors ('&name') are not supported; write the value out");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail(mark, fmt::format("the tag {} is not supported; leave it out",
                             shown(tag)));
    }
  }

  void open(const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor, YamlNode::Kind kind) {
    check(mark, tag, anchor);
    if (!open_.empty() && open_.back().wants_key()) {
      fail(mark, "a key must be a word, not a list or map");
    }
    open_.push_back({{.kind = kind, .place = place_of(mark)}, std::nullopt});
  }

  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    place_node(std::move(node));
  }

  void place_node(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.wants_key()) {
      parent.key = std::move(node);
      return;
    }
    if (parent.key) {
      node.key = std::move(parent.key->text);
      node.key_place = parent.key->place;
      parent.key.reset();
    }
    parent.node.children.push_back(std::move(node));
  }

  std::string file_name_;
  YamlNode root_;
  std::vector<Open> open_;
  int num_documents_ = 0;
};

YamlPlace place_at(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto last_line = before.rfind('\n');
  const size_t column =
      last_line == std::string_view::npos ? offset + 1 : offset - last_line;
  return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(column)};
}

// yaml-cpp would guess at other encodings and replace bytes that it cannot
// read.
void check_is_text(std::string_view text, std::string_view file_name) {
  const auto binary = std::find_if(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\t' && c != '\r') || byte == 0x7f;
  });
  if (binary != text.end()) {
    const auto offset = static_cast<size_t>(binary - text.begin());
    throw ConfigError(fmt::format(
        "{}: byte 0x{:02x} is not text; a settings file is YAML, in UTF-8",
        yaml_where(file_name, place_at(text, offset)),
        static_cast<unsigned char>(*binary)));
  }
  if (!base::is_utf8(text)) {
    throw ConfigError(fmt::format(
        "{} is not UTF-8; a settings file is YAML, in UTF-8", file_name));
  }
}

}  // namespace

std::string yaml_where(std::string_view file_name, YamlPlace place) {
  return fmt::format("{}:{}:{}", file_name, place.line, place.column);
}

YamlNode parse_yaml(std::string_view text, std::string_view file_name) {
  check_is_text(text, file_name);
  TreeBuilder builder(file_name);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw ConfigError(fmt::format("{}: malformed YAML: {}",
                                  yaml_where(file_name, place_of(error.mark)),
                                  error.msg));
  }
  YamlNode root = builder.take_root();
  if (root.kind == YamlNode::Kind::kNull) root.kind = YamlNode::Kind::kMap;
  if (root.kind != YamlNode::Kind::kMap) {
    throw ConfigError(fmt::format(
        "{}: expected settings, one 'key: value' per line, got {}",
        yaml_where(file_name, root.place),
        root.kind == YamlNode::Kind::kList ? "a list" : shown(root.text)));
  }
  return root;
}

}  // namespace lockstep::config
