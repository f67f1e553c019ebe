#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "lockstep/checkpoint.h"
#include "lockstep/cli/probe_command.h"
#include "lockstep/formats/value.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::cli {
namespace {

// Every leaf of a checkpoint by its path, as bytes.
using Leaves = std::map<std::string, std::string>;

std::string bytes_of_tensor(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  std::string bytes = fmt::format("{} {}", c10::toString(tensor.scalar_type()),
                                  fmt::join(tensor.sizes(), "x"));
  const size_t begin = bytes.size();
  bytes.resize(begin + dense.nbytes());
  if (dense.nbytes() > 0) {
    std::memcpy(bytes.data() + begin, dense.const_data_ptr(), dense.nbytes());
  }
  return bytes;
}

void collect(const Tree& tree, const std::string& path, Leaves& leaves);

void collect_all(const Tree::List& items, const std::string& path,
                 Leaves& leaves) {
  for (size_t i = 0; i < items.size(); ++i) {
    collect(items[i], fmt::format("{}[{}]", path, i), leaves);
  }
}

std::string key_text(const Tree& key) {
  if (const auto* text = key.get_if<std::string>()) return *text;
  if (const auto* number = key.get_if<int64_t>()) {
    return std::to_string(*number);
  }
  return "?";
}

void collect(const Tree& tree, const std::string& path, Leaves& leaves) {
  if (const auto* dict = tree.get_if<Tree::Dict>()) {
    for (const auto& entry : *dict) {
      const std::string key = key_text(entry.key);
      collect(entry.value, path.empty() ? key : path + "." + key, leaves);
    }
  } else if (const auto* list = tree.get_if<Tree::List>()) {
    collect_all(*list, path, leaves);
  } else if (const auto* tuple = tree.get_if<Tree::Tuple>()) {
    collect_all(tuple->items, path, leaves);
  } else if (const auto* tensor = tree.get_if<at::Tensor>()) {
    leaves[path] = bytes_of_tensor(*tensor);
  } else if (const auto* text = tree.get_if<std::string>()) {
    leaves[path] = *text;
  } else if (const auto* number = tree.get_if<double>()) {
    leaves[path] = fmt::format("{}", *number);
  } else if (const auto* whole = tree.get_if<int64_t>()) {
    leaves[path] = std::to_string(*whole);
  } else if (const auto* flag = tree.get_if<bool>()) {
    leaves[path] = *flag ? "true" : "false";
  }
}

Leaves leaves_of(const std::string& file) {
  Leaves leaves;
  collect(load_checkpoint(file), "", leaves);
  // The settings name the folder, and how the run was started.
  std::erase_if(leaves, [](const auto& leaf) {
    return leaf.first.starts_with("lockstep.config") ||
           leaf.first.starts_with("config") || leaf.first.starts_with("args");
  });
  return leaves;
}

}  // namespace

int probe_checkpoints(const std::string& expected, const std::string& actual,
                      const CommandContext& context) {
  const Leaves right = leaves_of(expected);
  const Leaves found = leaves_of(actual);
  nlohmann::json result = {{"equal", 0},
                           {"different", nlohmann::json::array()}};
  int64_t num_equal = 0;
  for (const auto& [path, bytes] : right) {
    const auto at = found.find(path);
    if (at != found.end() && at->second == bytes) {
      ++num_equal;
    } else {
      result["different"].push_back(path);
    }
  }
  for (const auto& [path, bytes] : found) {
    if (!right.contains(path)) result["different"].push_back(path);
  }
  result["equal"] = num_equal;
  context.output.out("doctor result " + result.dump() + "\n");
  return 0;
}

}  // namespace lockstep::cli
