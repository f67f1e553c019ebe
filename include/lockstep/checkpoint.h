// Checkpoints: a tree of values with torch tensors, its files, and the state of
// a module.
//
//   Tree tree;
//   tree["epoch"] = 3;
//   tree["model"] = module_state(*net);
//   save_checkpoint("last.pt", tree);
//
//   const Tree loaded = load_checkpoint("last.pt");
//   loaded.at("epoch").as_int();
//   load_module_state(*net, loaded.at("model"));
//
// A missing or wrong key is a FormatError that names its whole path:
// "checkpoint: 'optimizer.state.0.step' is a string, expected a tensor".
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/value.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

using Tree = BasicValue<at::Tensor>;
using TreeView = BasicView<at::Tensor>;

// Writes a file for torch.load(weights_only=True), atomically: at any moment,
// also when the process is killed, the path holds the old file or the new one.
// Blocks until the new one is on the disk. Throws IoError, and ConfigError or
// FormatError for a tree that such a file cannot hold.
LOCKSTEP_EXPORT void save_checkpoint(const std::filesystem::path& path,
                                     const Tree& tree);

// Reads a file of torch.save (zip or old format) or a .safetensors file,
// distinguished by content. Checksums and structure are checked before anything
// is returned; nothing in the file is executed. Objects of unknown classes
// become Opaque. All tensors are on the CPU. Throws IoError and FormatError.
LOCKSTEP_EXPORT Tree load_checkpoint(const std::filesystem::path& path);

// Writes a dict of tensors, such as module_state() gives, as .safetensors,
// atomically. Throws IoError, and ConfigError for any other tree.
LOCKSTEP_EXPORT void save_safetensors(const std::filesystem::path& path,
                                      const Tree& tensors);

// Called on the writing thread: before a file is written, and after it was or
// could not be.
struct BackgroundSaverConfig {
  std::function<void()> before_save = {};
  std::function<void(const std::filesystem::path& path)> on_saved = {};
  std::function<void(const std::filesystem::path& path,
                     const std::string& error)>
      on_error = {};
};

// Copies a tree and writes the copy on a background thread, one file at a time.
// The memory of the copy is reused. Call all functions from one thread.
class LOCKSTEP_EXPORT BackgroundSaver {
 public:
  explicit BackgroundSaver(BackgroundSaverConfig config = {});
  ~BackgroundSaver();  // Calls wait().
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  // Waits for the previous file, copies all tensors to host memory (pinned,
  // from a GPU) and returns: the caller may then change them. Writes like
  // save_checkpoint(). Throws ConfigError for tensors that cannot be saved;
  // write errors are kept.
  void save(const std::filesystem::path& path, const Tree& tree);

  // Blocks until nothing is being written.
  void wait();

  // The first error since the last call, with its path.
  std::optional<std::string> take_error();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

using NamedWeights = std::vector<std::pair<std::string, at::Tensor>>;

// All defined parameters and buffers, sharing the module's memory.
LOCKSTEP_EXPORT NamedWeights named_tensors(const torch::nn::Module& module);

// A dict of all parameters and buffers. They share the module's memory: use
// host_copy() or BackgroundSaver for a snapshot.
LOCKSTEP_EXPORT Tree module_state(const torch::nn::Module& module);

enum class Strictness {
  kStrict,    // Every name and shape must fit, or nothing is loaded.
  kWhatFits,  // Mismatches are only reported.
};

struct LOCKSTEP_EXPORT LoadReport {
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

// The weights in a file of any program: the value of the first common key
// (model_state_dict, state_dict, model, ...) that holds tensors; else the file
// itself.
LOCKSTEP_EXPORT const Tree& find_state_dict(const Tree& file);

// The prefix that Python's wrappers add to all names: "module."
// (DistributedDataParallel), "_orig_mod." (torch.compile), or several of them
// ("module._orig_mod."). Empty unless all names share it.
LOCKSTEP_EXPORT std::string wrapper_prefix(
    const std::vector<std::string>& names);

// Copies the state's tensors into the module, to its devices and types. The
// wrapper_prefix() of the state is removed, unless a name of the module begins
// with such a prefix itself. Entries that are not tensors are unexpected;
// unknown objects are skipped. Throws FormatError if the state is not a dict,
// ConfigError in strict mode with at most 10 names.
LOCKSTEP_EXPORT LoadReport
load_module_state(torch::nn::Module& module, const TreeView& state,
                  Strictness strictness = Strictness::kStrict);

}  // namespace lockstep
