#include "lockstep/app/checkpoint_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "lockstep/base/printable.h"
#include "lockstep/base/strings.h"
#include "lockstep/checkpoint.h"
#include "lockstep/config/parse.h"
#include "lockstep/error.h"
#include "lockstep/options.h"
#include "lockstep/registry.h"
#include "lockstep/run/checkpoint_sections.h"
#include "lockstep/run/run_folder.h"

namespace lockstep::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNumbers = 8;  // Longer lists are cut.
constexpr size_t kMostLeftOut = 10;

constexpr const char* kInspectUsage =
    "usage: lockstep inspect FILE...\n\n"
    "lists what torch and safetensors files hold: names, types and shapes of "
    "tensors,\nnumbers and texts\n";
constexpr const char* kExportUsage =
    "usage: lockstep export FROM TO [--key NAME]\n\n"
    "writes the weights of the file FROM, and nothing else, to TO, which ends "
    "in\n.safetensors, .pt or .pth\n\n"
    "  --key NAME  which weights: a path that lockstep inspect shows, such as\n"
    "              model_state_dict, lockstep.ema.0.state_dict or, for a part "
    "of "
    "the\n              names, state_dict.model\n";

struct Listing {
  std::string text;
  std::string long_texts;  // Such as a run's config; printed after the list.
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
  listing.text += fmt::format("{}  {} [{}]\n", path,
                              c10::getDtypeNames(tensor.scalar_type()).first,
                              fmt::join(tensor.sizes(), ", "));
}

void list_text(const std::string& path, const std::string& text,
               Listing& listing) {
  if (text.find('\n') == std::string::npos) {
    listing.text +=
        fmt::format("{}  \"{}\"\n", path, base::printable_line(text));
  } else {
    listing.long_texts +=
        fmt::format("\n{}:\n{}\n", path, base::printable_text(text));
  }
}

std::optional<std::string> number_text(const Tree& value) {
  if (const auto* number = value.get_if<int64_t>()) {
    return fmt::format("{}", *number);
  }
  if (const auto* real = value.get_if<double>()) {
    return fmt::format("{}", *real);
  }
  return std::nullopt;
}

// "[0.9, 0.999]" or "[750 numbers: 1.2, 0.9, ..., 0.01]"; no value if the list
// has other items.
std::optional<std::string> numbers_text(const Tree::List& items) {
  std::vector<std::string> numbers;
  for (const Tree& item : items) {
    const auto text = number_text(item);
    if (!text) return std::nullopt;
    numbers.push_back(*text);
  }
  if (numbers.size() <= kMostNumbers)
    return "[" + base::join(numbers, ", ") + "]";
  return fmt::format("[{} numbers: {}, {}, ..., {}]", numbers.size(),
                     numbers[0], numbers[1], numbers.back());
}

void list(const std::string& path, const Tree& value, Listing& listing) {
  const auto below = [&](const std::string& name) {
    return path.empty() ? name : path + "." + name;
  };
  const auto list_items = [&](const Tree::List& items) {
    if (const auto numbers = numbers_text(items)) {
      listing.text += fmt::format("{}  {}\n", path, *numbers);
      return;
    }
    for (size_t i = 0; i < items.size(); ++i) {
      list(below(fmt::format("{}", i)), items[i], listing);
    }
  };
  if (const auto* tensor = value.get_if<at::Tensor>()) {
    list_tensor(path, *tensor, listing);
  } else if (const auto* dict = value.get_if<Tree::Dict>()) {
    for (const auto& entry : *dict) {
      list(below(base::printable_line(key_text(entry.key))), entry.value,
           listing);
    }
  } else if (const auto* items = value.get_if<Tree::List>()) {
    list_items(*items);
  } else if (const auto* tuple = value.get_if<Tree::Tuple>()) {
    list_items(tuple->items);
  } else if (const auto* text = value.get_if<std::string>()) {
    list_text(path, *text, listing);
  } else if (const auto number = number_text(value)) {
    listing.text += fmt::format("{}  {}\n", path, *number);
  } else if (const auto* flag = value.get_if<bool>()) {
    listing.text += fmt::format("{}  {}\n", path, *flag);
  } else if (const auto* opaque = value.get_if<Opaque>()) {
    listing.text += fmt::format("{}  (an object of {}, not read)\n", path,
                                base::printable_line(opaque->class_name));
  } else if (value.is_null()) {
    listing.text += path + "  none\n";
  }
}

// The weights, by the model's names, of a recipe that stores parts of its model
// under separate keys. No value if the file has no such keys.
std::optional<Tree> joined_parts(const Tree& tree, const std::string& path) {
  for (const RecipeEntry& entry : all_recipes()) {
    Settings settings;
    const auto recipe = entry.make();
    recipe->describe(settings);
    const CheckpointLayout& layout = settings.checkpoint;
    const bool has_all = std::ranges::all_of(
        layout.model,
        [&](const ModelPart& part) { return tree.find(part.key) != nullptr; });
    if (layout.model.size() > 1 && has_all) {
      return run::find_weights(tree, layout, path);
    }
  }
  return std::nullopt;
}

// The entries of a dict whose names begin with `prefix`, without it.
Tree entries_below(const Tree& tree, const std::string& prefix) {
  Tree below = Tree::dict();
  const auto* dict = tree.get_if<Tree::Dict>();
  for (const auto& entry : dict != nullptr ? *dict : Tree::Dict()) {
    const auto* name = entry.key.get_if<std::string>();
    if (name != nullptr && name->starts_with(prefix)) {
      below[name->substr(prefix.size())] = entry.value;
    }
  }
  return below;
}

// What a path of lockstep inspect names. Its end may be the beginning of names
// in a state dict: "state_dict.model" for "state_dict" with "model.weight".
Tree value_at(const Tree& tree, const std::string& key) {
  const std::vector<std::string> parts = base::split(key, '.');
  const Tree* found = &tree;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto index = base::parse_integer(parts[i]);
    const Tree* next = found->find(parts[i]);
    if (next == nullptr && index) {
      next = found->is<Tree::Dict>() ? found->find(*index)
                                     : &TreeView(*found).at(*index).value();
    }
    if (next == nullptr) {
      const std::vector<std::string> rest(
          parts.begin() + static_cast<std::ptrdiff_t>(i), parts.end());
      Tree below = entries_below(*found, base::join(rest, ".") + ".");
      if (!below.get_if<Tree::Dict>()->empty()) return below;
      throw ConfigError("--key " + key +
                        ": the file has no such entry; lockstep inspect "
                        "lists them");
    }
    found = next;
  }
  return *found;
}

Tree weights_of(const Tree& tree, const std::string& key,
                const std::string& path) {
  if (!key.empty()) return value_at(tree, key);
  if (auto parts = joined_parts(tree, path)) return *std::move(parts);
  return find_state_dict(tree);
}

struct Exported {
  Tree tensors = Tree::dict();
  std::vector<std::string> left_out;  // "epoch (a whole number)"
};

std::string left_out_text(const Tree::Entry& entry) {
  const auto* opaque = entry.value.get_if<Opaque>();
  const std::string reason =
      opaque != nullptr ? fmt::format("an object of {}, not read",
                                      base::printable_line(opaque->class_name))
                        : std::string(kind_text(entry.value.data().index()));
  return fmt::format("{} ({})", base::printable_line(key_text(entry.key)),
                     reason);
}

// Files of other programs contain numbers and texts besides weights.
Exported tensors_of(const Tree& weights, const std::string& path) {
  Exported exported;
  std::vector<std::pair<std::string, at::Tensor>> found;
  std::vector<std::string> names;
  const auto* dict = weights.get_if<Tree::Dict>();
  for (const auto& entry : dict != nullptr ? *dict : Tree::Dict()) {
    if (const auto* tensor = entry.value.get_if<at::Tensor>()) {
      names.push_back(key_text(entry.key));
      found.emplace_back(names.back(), *tensor);
    } else {
      exported.left_out.push_back(left_out_text(entry));
    }
  }
  if (found.empty()) {
    throw ConfigError(path +
                      ": no weights found there; lockstep inspect lists "
                      "what the file holds, --key NAME chooses");
  }
  const size_t prefix_size = wrapper_prefix(names).size();
  Tree::Dict tensors;
  for (const auto& [name, tensor] : found) {
    tensors.push_back({name.substr(prefix_size), tensor});
  }
  exported.tensors = std::move(tensors);
  return exported;
}

std::string left_out_line(std::vector<std::string> left_out) {
  if (left_out.empty()) return "";
  const size_t count = left_out.size();
  left_out.resize(std::min(count, kMostLeftOut));
  std::string line = "left out: " + base::join(left_out, ", ");
  if (count > kMostLeftOut) {
    line += fmt::format(" and {} more", count - kMostLeftOut);
  }
  return line + "\n";
}

std::string inspect_file(const std::string& path) {
  run::require_file("lockstep inspect", path);
  const Tree tree = load_checkpoint(path);
  Listing listing;
  list("", tree, listing);
  return fmt::format(
      "{}: {} on disk, {} tensors of {}\n{}{}", path,
      base::bytes_text(static_cast<int64_t>(fs::file_size(path))),
      listing.num_tensors, base::bytes_text(listing.num_bytes), listing.text,
      listing.long_texts);
}

}  // namespace

std::string inspect_checkpoint(const std::vector<std::string>& arguments) {
  Options options;
  const config::ParsedCommand parsed =
      config::parse_command(options, arguments);
  if (parsed.help) return kInspectUsage;
  if (parsed.positionals.empty()) {
    throw ConfigError("a file is missing: lockstep inspect FILE...");
  }
  std::vector<std::string> listings;
  for (const std::string& path : parsed.positionals) {
    listings.push_back(inspect_file(path));
  }
  return base::join(listings, "\n");
}

std::string export_checkpoint(const std::vector<std::string>& arguments) {
  std::string key;
  Options options;
  options.add("key", key, "which weights: a path such as model_state_dict");
  const config::ParsedCommand parsed =
      config::parse_command(options, arguments);
  if (parsed.help) return kExportUsage;
  if (parsed.positionals.size() != 2) {
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
  run::require_file("lockstep export", from);
  const Tree tree = load_checkpoint(from);
  const Exported exported = tensors_of(weights_of(tree, key, from), from);
  if (is_safetensors) {
    save_safetensors(to, exported.tensors);
  } else {
    save_checkpoint(to, exported.tensors);
  }
  return fmt::format("{} -> {}: {} tensors\n{}", from, to.string(),
                     exported.tensors.get_if<Tree::Dict>()->size(),
                     left_out_line(exported.left_out));
}

}  // namespace lockstep::app
