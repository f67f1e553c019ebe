// Published weights: named tensors in one file or in several.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint.h"
#include "lockstep/tensor/tensor.h"

namespace torch::nn {
class Module;
}

namespace lockstep::checkpoint {

// A tensor without its values.
struct WeightFacts {
  std::vector<int64_t> shape = {};
  at::ScalarType dtype = at::kFloat;
};

// The files stay open; a tensor's bytes are read when it is asked for, and
// besides when a file has checksums. Safe to use from several threads at once.
class WeightFiles {
 public:
  // `path`: a .safetensors file; a file of torch.save, whose state dict is
  // found as by find_state_dict(); an *.index.json beside the files it names;
  // or a folder with model.safetensors, pytorch_model.bin (either may be an
  // index) or model.pt. Throws IoError for what is not there, FormatError for
  // what is damaged, ConfigError for a folder without weights.
  explicit WeightFiles(const std::filesystem::path& path);
  ~WeightFiles();
  WeightFiles(WeightFiles&&) noexcept;
  WeightFiles& operator=(WeightFiles&&) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::vector<std::string> names() const;  // sorted
  bool has(const std::string& name) const;

  // These four throw ConfigError for an unknown name; the last three also
  // IoError, for example when a file has been truncated.
  WeightFacts facts(const std::string& name) const;

  // A copy on the CPU, contiguous.
  at::Tensor get(const std::string& name) const;

  // The same of tensor[index] alone. Throws ConfigError when there is none.
  at::Tensor row(const std::string& name, int64_t index) const;

  // Copies the tensor to the device, in its own type or another one, with
  // little memory beyond the copy.
  at::Tensor load(const std::string& name, const at::TensorOptions& to) const;

  // SHA-256 of all names, types, shapes and numbers: the same for the same
  // weights in any format and any number of files. It reads everything once;
  // with a folder for notes a second call, also of another process, reads
  // nothing as long as the files keep their place, size and time.
  std::string content_hash(const std::filesystem::path& notes = {}) const;

 private:
  struct Entry;
  struct Content;

  const Entry& find(const std::string& name) const;

  std::filesystem::path path_;
  std::unique_ptr<const Content> content_;
};

struct FillConfig {
  at::Device device = at::kCPU;
  std::optional<at::ScalarType> dtype = {};  // Unset: as in the file.
  // The name in the file of a parameter; none: it keeps what it has. Unset: the
  // same name.
  std::function<std::optional<std::string>(const std::string&)> name_in_file =
      {};
  // Prefixes of tensors in the file that may be left unused.
  std::vector<std::string> ignored_prefixes = {};
};

// Puts the files' tensors in the place of the module's parameters and buffers,
// one at a time. Only floating-point tensors are converted. Nothing is read
// before all names and shapes were compared: throws ConfigError with the path
// and what is missing, not known or of another shape.
LoadReport fill_module(torch::nn::Module& module, const WeightFiles& files,
                       const FillConfig& config = {});

}  // namespace lockstep::checkpoint
