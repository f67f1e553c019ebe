#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "lockstep/base/shape_text.h"
#include "lockstep/base/strings.h"
#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint/record.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kWrappers = {"module.", "_orig_mod."};
constexpr std::array kCommonKeys = {"model_state_dict", "state_dict", "model",
                                    "module", "net"};
constexpr size_t kMaxNames = 10;

// The wrapper prefix of the name; empty when there is none.
std::string_view first_wrapper(std::string_view text) {
  for (const std::string_view wrapper : kWrappers) {
    if (text.starts_with(wrapper)) return wrapper;
  }
  return "";
}

bool has_wrapper(const NamedWeights::value_type& item) {
  return !first_wrapper(item.first).empty();
}

// The state by name, undefined where an entry is not a tensor.
std::unordered_map<std::string, at::Tensor> tensors_by_name(
    const TreeView& state, const NamedWeights& own) {
  std::unordered_map<std::string, at::Tensor> tensors;
  for (const auto& entry : state.as_dict()) {
    const auto* name = entry.key.get_if<std::string>();
    if (name == nullptr || entry.value.is<Opaque>()) continue;
    const auto* tensor = entry.value.get_if<at::Tensor>();
    tensors.emplace(*name, tensor == nullptr ? at::Tensor() : *tensor);
  }
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.defined()) names.push_back(name);
  }
  const std::string prefix = wrapper_prefix(names);
  if (prefix.empty() || std::ranges::any_of(own, has_wrapper)) return tensors;
  std::unordered_map<std::string, at::Tensor> unwrapped;
  for (const auto& [name, tensor] : tensors) {
    const bool is_wrapped = name.starts_with(prefix);
    unwrapped.emplace(is_wrapped ? name.substr(prefix.size()) : name, tensor);
  }
  return unwrapped;
}

std::string list_text(const char* title, const std::vector<std::string>& names,
                      size_t& room) {
  if (names.empty()) return "";
  const size_t count = std::min(room, names.size());
  room -= count;
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count));
  const std::string text = std::string("; ") + title + ": ";
  const std::string more = std::to_string(names.size() - count);
  if (count == 0) return text + more + " names";
  if (count == names.size()) return text + base::join(shown, ", ");
  return text + base::join(shown, ", ") + " and " + more + " more";
}

template <typename Tensor>
const BasicValue<Tensor>& state_dict_in(const BasicValue<Tensor>& file) {
  using Node = BasicValue<Tensor>;
  const auto holds_tensors = [](const Node& value) {
    const auto* dict = value.template get_if<typename Node::Dict>();
    return dict != nullptr &&
           std::ranges::any_of(*dict, [](const typename Node::Entry& entry) {
             return entry.value.template is<Tensor>();
           });
  };
  for (const char* key : kCommonKeys) {
    const Node* found = file.find(key);
    if (found != nullptr && holds_tensors(*found)) return *found;
  }
  return file;
}

}  // namespace

NamedWeights named_tensors(const torch::nn::Module& module) {
  NamedWeights tensors;
  const auto add = [&](const auto& named) {
    for (const auto& item : named) {
      if (item.value().defined()) {
        tensors.emplace_back(item.key(), item.value());
      }
    }
  };
  add(module.named_parameters());
  add(module.named_buffers());
  return tensors;
}

std::string LoadReport::text() const {
  size_t room = kMaxNames;
  std::string text = list_text("of another shape", mismatched, room);
  text += list_text("missing in the checkpoint", missing, room);
  text += list_text("unknown to the module", unexpected, room);
  return text;
}

std::string wrapper_prefix(const std::vector<std::string>& names) {
  constexpr int kMostWrappers = 8;  // A name of a file may be endless.
  std::string prefix;
  for (int i = 0; i < kMostWrappers && !names.empty(); ++i) {
    const auto wrapper =
        first_wrapper(std::string_view(names[0]).substr(prefix.size()));
    const std::string longer = prefix + std::string(wrapper);
    const bool is_of_all =
        std::ranges::all_of(names, [&longer](const std::string& name) {
          return name.size() > longer.size() && name.starts_with(longer);
        });
    if (wrapper.empty() || !is_of_all) break;
    prefix = longer;
  }
  return prefix;
}

const Tree& find_state_dict(const Tree& file) { return state_dict_in(file); }

const formats::Value& checkpoint::find_value_dict(const formats::Value& file) {
  return state_dict_in(file);
}

Tree module_state(const torch::nn::Module& module) {
  Tree::Dict state;
  for (auto& [name, tensor] : named_tensors(module)) {
    state.push_back({name, tensor.detach()});
  }
  return state;
}

LoadReport load_module_state(torch::nn::Module& module, const TreeView& state,
                             Strictness strictness) {
  const NamedWeights own = named_tensors(module);
  auto given = tensors_by_name(state, own);
  LoadReport report;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // to, from
  for (const auto& [name, tensor] : own) {
    const auto found = given.find(name);
    if (found == given.end()) {
      report.missing.push_back(name);
      continue;
    }
    const at::Tensor& source = found->second;
    if (!source.defined()) {
      report.mismatched.push_back(name + ": no tensor");
    } else if (source.sizes() != tensor.sizes()) {
      report.mismatched.push_back(
          name + ": file " + base::shape_text(source.sizes()) + ", module " +
          base::shape_text(tensor.sizes()));
    } else {
      copies.emplace_back(tensor, source);
    }
    given.erase(found);
  }
  for (const auto& [name, tensor] : given) report.unexpected.push_back(name);
  std::ranges::sort(report.unexpected);
  if (strictness == Strictness::kStrict && !report.is_complete()) {
    throw ConfigError("the checkpoint does not fit the module" + report.text() +
                      ". Was it saved by a different model or configuration?");
  }
  const at::NoGradGuard no_grad;
  for (const auto& [to, from] : copies) to.copy_(from);
  report.num_loaded = static_cast<int64_t>(copies.size());
  return report;
}

}  // namespace lockstep
