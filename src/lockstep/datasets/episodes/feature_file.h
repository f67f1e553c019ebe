// Files of features: a few named tensors with a checksum.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::episodes {

using NamedFeatures = std::vector<std::pair<std::string, at::Tensor>>;

// Atomically; tensors are on the CPU. Throws IoError.
void write_features(const std::filesystem::path& path,
                    const NamedFeatures& features);

// Whether the file is there, readable, and what was written. Reads all of it.
bool is_whole_feature_file(const std::filesystem::path& path);

// An open file, mapped. Only what is taken is read.
class FeatureFile {
 public:
  // Throws IoError and FormatError.
  explicit FeatureFile(const std::filesystem::path& path);
  ~FeatureFile();

  bool has(const std::string& name) const;

  // A copy of one row of a tensor, or of all of it. Throws ConfigError when
  // there is none of this name.
  at::Tensor row(const std::string& name, int64_t row) const;
  at::Tensor all(const std::string& name) const;

 private:
  struct Content;
  std::unique_ptr<const Content> content_;
};

}  // namespace lockstep::episodes
