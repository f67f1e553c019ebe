#include "lockstep/app/checkpoint_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <array>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/checkpoint/file.h"
#include "lockstep/config/options.h"
#include "lockstep/config/parse.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// What programs call the weights; the first that is there is taken.
constexpr std::array kWeightKeys = {"model_state_dict", "state_dict", "model"};

struct Listing {
  std::string text;
  std::string long_texts;  // Such as a run's config, behind the list.
  int64_t num_tensors = 0;
  int64_t num_bytes = 0;
};

std::string key_text(const Tree& key) {
  if (const auto* text = key.get_if<std::string>()) return *text;
  if (const auto* number = key.get_if<int64_t>())
    return fmt::format("{}", *number);
  return "?";
}

void list_tensor(const std::string& path, const at::Tensor& tensor,
                 Listing& listing) {
  ++listing.num_tensors;
  listing.num_bytes += static_cast<int64_t>(tensor.nbytes());
  listing.text +=
      fmt::format("{}  {} [{}]\n", path, c10::toString(tensor.scalar_type()),
                  fmt::join(tensor.sizes(), ", "));
}

void list_text(const std::string& path, const std::string& text,
               Listing& listing) {
  if (text.find('\n') == std::string::npos) {
    listing.text += fmt::format("{}  \"{}\"\n", path, text);
  } else {
    listing.long_texts += fmt::format("\n{}:\n{}\n", path, text);
  }
}

void list(const std::string& path, const Tree& value, Listing& listing) {
  const auto below = [&](const std::string& name) {
    return path.empty() ? name : path + "." + name;
  };
  const auto list_items = [&](const Tree::List& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      list(below(fmt::format("{}", i)), items[i], listing);
    }
  };
  if (const auto* tensor = value.get_if<at::Tensor>()) {
    list_tensor(path, *tensor, listing);
  } else if (const auto* dict = value.get_if<Tree::Dict>()) {
    for (const auto& entry : *dict) {
      list(below(key_text(entry.key)), entry.value, listing);
    }
  } else if (const auto* items = value.get_if<Tree::List>()) {
    list_items(*items);
  } else if (const auto* tuple = value.get_if<Tree::Tuple>()) {
    list_items(tuple->items);
  } else if (const auto* text = value.get_if<std::string>()) {
    list_text(path, *text, listing);
  } else if (const auto* number = value.get_if<int64_t>()) {
    listing.text += fmt::format("{}  {}\n", path, *number);
  } else if (const auto* real = value.get_if<double>()) {
    listing.text += fmt::format("{}  {:.17g}\n", path, *real);
  } else if (const auto* flag = value.get_if<bool>()) {
    listing.text += fmt::format("{}  {}\n", path, *flag);
  } else if (const auto* opaque = value.get_if<Opaque>()) {
    listing.text += fmt::format("{}  (an object of {}, not read)\n", path,
                                opaque->class_name);
  } else if (value.is_null()) {
    listing.text += path + "  none\n";
  }
}

const Tree& weights_of(const Tree& tree, const std::string& key) {
  if (!key.empty()) {
    const Tree* found = &tree;
    for (const std::string& part : split(key, '.')) {
      const auto index = parse_integer(part);
      const Tree* next = found->find(part);
      if (next == nullptr && index) next = &TreeView(*found).at(*index).value();
      if (next == nullptr) {
        throw ConfigError("--key " + key +
                          ": the file has no such entry; lockstep inspect "
                          "lists them");
      }
      found = next;
    }
    return *found;
  }
  for (const char* name : kWeightKeys) {
    if (const Tree* weights = tree.find(name)) return *weights;
  }
  return tree;
}

// Files of other programs hold numbers and texts beside the weights.
Tree tensors_of(const Tree& weights, const std::string& path) {
  const auto* dict = weights.get_if<Tree::Dict>();
  Tree tensors = Tree::dict();
  int64_t count = 0;
  if (dict != nullptr) {
    for (const auto& entry : *dict) {
      const auto* tensor = entry.value.get_if<at::Tensor>();
      if (tensor == nullptr) continue;
      tensors[key_text(entry.key)] = *tensor;
      ++count;
    }
  }
  if (count == 0) {
    throw ConfigError(path +
                      ": no weights found there; lockstep inspect lists "
                      "what the file holds, --key NAME chooses");
  }
  return tensors;
}

}  // namespace

std::string inspect_checkpoint(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) {
    throw ConfigError("usage: lockstep inspect FILE");
  }
  const Tree tree = load_checkpoint(arguments[0]);
  Listing listing;
  list("", tree, listing);
  return fmt::format(
      "{}: {} on disk, {} tensors of {}\n{}{}", arguments[0],
      bytes_text(static_cast<int64_t>(fs::file_size(arguments[0]))),
      listing.num_tensors, bytes_text(listing.num_bytes), listing.text,
      listing.long_texts);
}

std::string export_checkpoint(const std::vector<std::string>& arguments) {
  std::string key;
  Options options;
  options.add("key", key, "which weights: a path such as model_state_dict");
  const ParsedCommand parsed = parse_command(options, arguments);
  if (parsed.help || parsed.positionals.size() != 2) {
    throw ConfigError(
        "usage: lockstep export FROM TO [--key NAME]; TO ends in .safetensors, "
        ".pt or .pth");
  }
  const std::string& from = parsed.positionals[0];
  const fs::path to = parsed.positionals[1];
  const bool is_safetensors = to.extension() == ".safetensors";
  if (!is_safetensors && to.extension() != ".pt" && to.extension() != ".pth") {
    throw ConfigError(to.string() +
                      ": the name must end in .safetensors, .pt or .pth, which "
                      "says what to write");
  }
  if (fs::exists(to)) {
    throw ConfigError(to.string() + " exists already: choose another name");
  }
  const Tree tree = load_checkpoint(from);
  const Tree tensors = tensors_of(weights_of(tree, key), from);
  if (is_safetensors) {
    save_safetensors(to, tensors);
  } else {
    save_checkpoint(to, tensors);
  }
  return fmt::format("{} -> {}: {} tensors\n", from, to.string(),
                     tensors.get_if<Tree::Dict>()->size());
}

}  // namespace lockstep
