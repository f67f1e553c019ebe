#include "lockstep/models/deeplab/weights.h"

#include <c10/core/MemoryFormat.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/models/deeplab/model.h"

namespace lockstep::deeplab {
namespace {

using Tensors = std::map<std::string, at::Tensor, std::less<>>;

Tensors read_tensors(const std::filesystem::path& path) {
  const Tree file = load_checkpoint(path);
  const auto* state = find_state_dict(file).get_if<Tree::Dict>();
  std::vector<std::string> names;
  Tensors tensors;
  if (state != nullptr) {
    for (const auto& entry : *state) {
      const auto* name = entry.key.get_if<std::string>();
      const auto* tensor = entry.value.get_if<at::Tensor>();
      if (name == nullptr || tensor == nullptr) continue;
      names.push_back(*name);
      tensors.emplace(*name, *tensor);
    }
  }
  if (tensors.empty()) {
    throw FormatError(fmt::format(
        "{} holds no weights: --model_path takes ImageNet weights of a ResNet "
        "or a checkpoint of this recipe",
        path.string()));
  }
  const std::string prefix = wrapper_prefix(names);
  Tensors unwrapped;
  for (const auto& [name, tensor] : tensors) {
    unwrapped.emplace(name.substr(prefix.size()), tensor);
  }
  return unwrapped;
}

bool is_of_trunk(std::string_view name) {
  return name.starts_with("conv1.") || name.starts_with("bn1.") ||
         (name.starts_with("layer") && name.size() > 6 && name[5] >= '1' &&
          name[5] <= '4' && name[6] == '.');
}

// Tensors that ImageNet weights may lack: the heads, and counters that old
// files do not have.
bool may_be_missing(std::string_view name) {
  return !is_of_trunk(name) || name.ends_with("num_batches_tracked");
}

}  // namespace

std::string load_scribble_weights(ScribbleNet& model,
                                  const std::filesystem::path& path) {
  Tensors given = read_tensors(path);
  std::erase_if(given,
                [](const auto& item) { return item.first.starts_with("fc."); });
  const bool is_trunk_only = std::ranges::all_of(
      given, [](const auto& item) { return is_of_trunk(item.first); });
  Tree::Dict state;
  for (const auto& [name, tensor] : given) state.push_back({name, tensor});
  if (is_trunk_only) {
    const Tree own = module_state(model);
    for (const auto& entry : *own.get_if<Tree::Dict>()) {
      const auto& name = *entry.key.get_if<std::string>();
      if (may_be_missing(name) && !given.contains(name)) state.push_back(entry);
    }
  }
  try {
    load_module_state(model, Tree(std::move(state)));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format(
        "--model_path {} does not fit --model_type {} --layers {} --numclasses "
        "{}: {}",
        path.string(), model.config().type, model.config().layers,
        model.config().num_classes, error.what()));
  }
  return is_trunk_only ? "ImageNet weights of the trunk"
                       : "weights of the whole model";
}

void make_channels_last(ScribbleNet& net) {
  for (auto& item : net.named_parameters()) {
    at::Tensor& parameter = item.value();
    // LoRM's query is used as a matrix.
    const bool is_matrix = item.key().ends_with("query_conv.weight");
    if (parameter.dim() != 4 || is_matrix) continue;
    at::Tensor like = torch::empty_strided(
        parameter.sizes(), c10::get_channels_last_strides_2d(parameter.sizes()),
        parameter.options());
    like.copy_(parameter.detach());
    parameter.set_data(like);
  }
}

}  // namespace lockstep::deeplab
