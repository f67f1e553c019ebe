#include "lockstep/datasets/episodes/feature_file.h"

#include <ATen/ATen.h>

#include <cstddef>
#include <span>

#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint/weight_files.h"
#include "lockstep/error.h"
#include "lockstep/formats/crc32.h"

namespace lockstep::episodes {
namespace {

namespace fs = std::filesystem;

// Beside a feature lies the checksum of its bytes.
std::string checksum_name(const std::string& name) { return name + ".crc32"; }

int64_t checksum_of(const at::Tensor& tensor) {
  const at::Tensor packed = tensor.contiguous();
  return formats::crc32_of(
      {static_cast<const std::byte*>(packed.const_data_ptr()),
       packed.nbytes()});
}

}  // namespace

struct FeatureFile::Content {
  checkpoint::WeightFiles files;
};

void write_features(const fs::path& path, const NamedFeatures& features) {
  Tree tree = Tree::dict();
  for (const auto& [name, tensor] : features) {
    tree[name] = tensor.contiguous();
    tree[checksum_name(name)] = at::tensor({checksum_of(tensor)}, at::kLong);
  }
  save_safetensors(path, tree);
}

bool is_whole_feature_file(const fs::path& path) {
  if (!fs::is_regular_file(path)) return false;
  try {
    const checkpoint::WeightFiles files(path);
    size_t num_checked = 0;
    for (const std::string& name : files.names()) {
      const std::string checksum = checksum_name(name);
      if (!files.has(checksum)) continue;
      if (files.get(checksum).item<int64_t>() != checksum_of(files.get(name))) {
        return false;
      }
      ++num_checked;
    }
    return num_checked * 2 == files.names().size();
  } catch (const Error&) {
    return false;
  }
}

FeatureFile::FeatureFile(const fs::path& path)
    : content_(
          std::make_unique<Content>(Content{checkpoint::WeightFiles(path)})) {}

FeatureFile::~FeatureFile() = default;

bool FeatureFile::has(const std::string& name) const {
  return content_->files.has(name);
}

at::Tensor FeatureFile::row(const std::string& name, int64_t row) const {
  return content_->files.row(name, row);
}

at::Tensor FeatureFile::all(const std::string& name) const {
  return content_->files.get(name);
}

}  // namespace lockstep::episodes
