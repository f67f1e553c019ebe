#include "lockstep/run/checkpoint_sections.h"

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/run/state_tree.h"

namespace lockstep::run {
namespace {

std::string without_dots(const std::string& name) {
  return base::replace_all(name, ".", "");
}

// The tensors of one part, with `prefix` added to their names and the prefixes
// of Python's wrappers removed.
void take_part(const Tree& part, const std::string& prefix, Tree& weights) {
  const auto* dict = part.get_if<Tree::Dict>();
  if (dict == nullptr) return;
  std::vector<std::string> names;
  std::vector<const Tree*> tensors;
  for (const auto& entry : *dict) {
    const auto* name = entry.key.get_if<std::string>();
    if (name == nullptr || !entry.value.is<at::Tensor>()) continue;
    names.push_back(*name);
    tensors.push_back(&entry.value);
  }
  const size_t wrapped = prefix.empty() ? 0 : wrapper_prefix(names).size();
  for (size_t i = 0; i < names.size(); ++i) {
    weights[prefix + names[i].substr(wrapped)] = *tensors[i];
  }
}

std::string keys_text(const TreeView& file) {
  std::vector<std::string> names;
  if (file.value().is<Tree::Dict>()) {
    for (const auto& entry : file.as_dict()) {
      const auto* name = entry.key.get_if<std::string>();
      names.push_back(name != nullptr ? *name : "?");
    }
  }
  const size_t count = std::min<size_t>(names.size(), 10);
  std::string text = base::join({names.begin(), names.begin() + count}, ", ");
  if (count < names.size()) text += ", ...";
  return text.empty() ? "nothing" : text;
}

Tree scalar_tree(const SettingScalar& scalar) {
  return std::visit([](const auto& value) { return Tree(value); }, scalar);
}

Tree best_tree(const engine::TrainState& state,
               const CheckpointLayout& layout) {
  if (layout.best_metrics.empty()) {
    return state.best.value ? Tree(*state.best.value) : Tree();
  }
  std::vector<Tree> values;
  for (const std::string& name : layout.best_metrics) {
    const double* value = find_metric(state.best.metrics, name);
    values.push_back(value != nullptr ? Tree(*value) : Tree());
  }
  return Tree::tuple(std::move(values));
}

}  // namespace

void put_model(Tree& checkpoint, const torch::nn::Module& model,
               const CheckpointLayout& layout) {
  for (const ModelPart& part : layout.model)
    checkpoint[part.key] = Tree::dict();
  const Tree state = module_state(model);
  for (const auto& entry : *state.get_if<Tree::Dict>()) {
    const std::string& name = *entry.key.get_if<std::string>();
    const auto part =
        std::ranges::find_if(layout.model, [&](const ModelPart& candidate) {
          return name.starts_with(candidate.prefix);
        });
    LOCKSTEP_CHECK(part != layout.model.end(),
                   name + " belongs to no part of the checkpoint");
    checkpoint[part->key][name.substr(part->prefix.size())] = entry.value;
  }
}

void put_averages(Tree& checkpoint, engine::Learner& learner,
                  const CheckpointLayout& layout) {
  const std::vector<std::string> names = learner.parameter_names();
  const size_t count =
      std::min(layout.averages.size(), learner.averages().size());
  for (size_t i = 0; i < count; ++i) {
    const Ema& ema = learner.averages()[i];
    Tree tree = Tree::dict();
    const bool is_dotless = layout.average_layout == AverageLayout::kDotless;
    if (is_dotless) {
      tree["decay"] = torch::tensor(static_cast<float>(ema.decay()));
      tree["num_updates"] =
          torch::tensor(static_cast<int32_t>(ema.num_updates()));
    }
    // With full names, readers expect all parameters.
    if (!is_dotless) {
      for (const auto& item : learner.model().named_parameters()) {
        tree[item.key()] = item.value().detach();
      }
    }
    for (size_t k = 0; k < names.size(); ++k) {
      tree[is_dotless ? without_dots(names[k]) : names[k]] =
          ema.averages().at(k);
    }
    checkpoint[layout.averages[i]] = std::move(tree);
  }
}

void put_progress(Tree& checkpoint, const engine::TrainState& state,
                  const CheckpointLayout& layout) {
  const auto put = [&](const std::string& key, Tree value) {
    if (!key.empty()) checkpoint[key] = std::move(value);
  };
  put(layout.epoch, state.position.epoch);
  put(layout.step, state.step);
  put(layout.loss, state.train_losses.values.empty()
                       ? Tree()
                       : Tree(state.train_losses.values.back()));
  put(layout.train_losses, numbers_tree(state.train_losses.values));
  put(layout.val_losses, numbers_tree(state.val_losses.values));
  put(layout.best, best_tree(state, layout));
}

Tree settings_tree(const Options& options) {
  Tree tree = Tree::dict();
  for (const Setting& setting : options.settings()) {
    const SettingValue value = setting.binding.read();
    if (setting.binding.shape == ValueShape::kList) {
      Tree list = Tree::list();
      for (const SettingScalar& item : value) list.push_back(scalar_tree(item));
      tree[setting.name] = std::move(list);
    } else {
      tree[setting.name] = value.empty() ? Tree() : scalar_tree(value.front());
    }
  }
  return tree;
}

Tree find_weights(const TreeView& file, const CheckpointLayout& layout,
                  const std::string& path) {
  Tree weights = Tree::dict();
  const Tree& tree = file.value();
  const bool has_parts = std::ranges::all_of(
      layout.model,
      [&](const ModelPart& part) { return tree.find(part.key) != nullptr; });
  if (has_parts) {
    for (const ModelPart& part : layout.model) {
      take_part(*tree.find(part.key), part.prefix, weights);
    }
  }
  const auto is_empty = [&] { return weights.get_if<Tree::Dict>()->empty(); };
  if (is_empty()) take_part(find_state_dict(tree), "", weights);
  if (is_empty()) {
    throw FormatError(fmt::format(
        "{} holds no weights where they are looked for; it holds {}. lockstep "
        "inspect lists all of it, lockstep export --key NAME makes a file of "
        "one part",
        path, keys_text(file)));
  }
  return weights;
}

Tree find_average(const TreeView& file, const CheckpointLayout& layout,
                  int64_t index, const std::vector<std::string>& names) {
  const auto number = static_cast<size_t>(index);
  if (number < layout.averages.size()) {
    if (const auto found = file.find(layout.averages[number])) {
      Tree average = Tree::dict();
      for (const std::string& name : names) {
        const Tree* tensor = found->value().find(name);
        if (tensor == nullptr) tensor = found->value().find(without_dots(name));
        if (tensor == nullptr) {
          throw ConfigError(fmt::format(
              "--ema {}: '{}' in the checkpoint has no average of {}; was it "
              "saved by a different model or configuration?",
              index, layout.averages[number], name));
        }
        average[name] = *tensor;
      }
      return average;
    }
  }
  const auto own = file.find("lockstep");
  const auto averages = own ? own->find("ema") : std::nullopt;
  const auto count = averages ? averages->as_list().size() : 0;
  if (number >= count) {
    throw ConfigError(fmt::format(
        "--ema {}: the checkpoint holds {} moving averages, counted "
        "from 0",
        index, count));
  }
  return averages->at(index).at("state_dict").value();
}

}  // namespace lockstep::run
