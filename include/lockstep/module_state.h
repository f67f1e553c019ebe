// Parameters and buffers of a module by name, as Python's state_dict().
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint_tree.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

using NamedWeights = std::vector<std::pair<std::string, at::Tensor>>;

// All parameters and buffers that there are, sharing the module's memory.
NamedWeights named_tensors(const torch::nn::Module& module);

// A dict of all parameters and buffers. They share the module's memory: use
// host_copy() or BackgroundSaver for a state that stays as it is.
Tree module_state(const torch::nn::Module& module);

enum class Strictness {
  kStrict,    // Every name and shape must fit, or nothing is loaded.
  kWhatFits,  // What does not fit is only reported.
};

struct LoadReport {
  int64_t num_loaded = 0;
  std::vector<std::string> missing;     // in the module, not in the state
  std::vector<std::string> unexpected;  // in the state, not in the module
  std::vector<std::string> mismatched;  // "name: file [2, 3], module [3]"

  bool is_complete() const {
    return missing.empty() && unexpected.empty() && mismatched.empty();
  }

  // Tensors of the module.
  int64_t num_own() const {
    return num_loaded +
           static_cast<int64_t>(missing.size() + mismatched.size());
  }

  // "; missing in the checkpoint: a, b and 7 more"; empty when complete.
  std::string text() const;
};

// The weights in a file of any program: what lies under the first of the keys
// that programs commonly use (model_state_dict, state_dict, model, ...) and
// holds tensors; else the file itself. For Tree and Value.
template <typename Tensor>
const BasicValue<Tensor>& find_state_dict(const BasicValue<Tensor>& file);

// What Python's wrappers put before the names of all weights: "module."
// (DistributedDataParallel), "_orig_mod." (torch.compile), or several of them
// ("module._orig_mod."). Empty when not all names begin with the same.
std::string wrapper_prefix(const std::vector<std::string>& names);

// Copies the state's tensors into the module, to its devices and types. The
// wrapper_prefix() of the state is taken off, unless a name of the module
// begins with such a word itself. Entries that are no tensors are unexpected;
// unknown objects are skipped. Throws
// FormatError when the state is no dict, ConfigError in strict mode with at
// most 10 names.
LoadReport load_module_state(torch::nn::Module& module, const TreeView& state,
                             Strictness strictness = Strictness::kStrict);

}  // namespace lockstep
