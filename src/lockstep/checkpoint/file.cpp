#include <fmt/format.h>

#include <utility>

#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint/host_copy.h"
#include "lockstep/checkpoint/record.h"
#include "lockstep/error.h"
#include "lockstep/formats/safetensors.h"
#include "lockstep/formats/torch_file.h"

namespace lockstep {

void save_checkpoint(const std::filesystem::path& path, const Tree& tree) {
  formats::write_torch_file(path, checkpoint::to_value(checkpoint::host_copy(
                                      tree, checkpoint::CpuTensors::kShare)));
}

Tree load_checkpoint(const std::filesystem::path& path) {
  const formats::ByteSource source = formats::open_source(path);
  try {
    if (formats::is_torch_file(source) ||
        !formats::is_safetensors_file(source)) {
      // Checksums of tensors are compared while they are copied.
      return checkpoint::to_tree(formats::read_torch_file(
          source, formats::TorchFileCheck::kStructure));
    }
    formats::Value::Dict tensors;
    for (auto& [name, tensor] : formats::read_safetensors(source).tensors) {
      tensors.push_back({std::move(name), std::move(tensor)});
    }
    return checkpoint::to_tree(std::move(tensors));
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("'{}' is damaged or not a checkpoint: {}",
                                  path.string(), error.what()));
  }
}

void save_safetensors(const std::filesystem::path& path, const Tree& tensors) {
  const formats::Value value = checkpoint::to_value(
      checkpoint::host_copy(tensors, checkpoint::CpuTensors::kShare));
  const auto* entries = value.get_if<formats::Value::Dict>();
  formats::Safetensors content;
  for (const auto& entry : entries ? *entries : formats::Value::Dict{}) {
    const auto* name = entry.key.get_if<std::string>();
    const auto* tensor = entry.value.get_if<formats::TensorRecord>();
    if (name == nullptr || tensor == nullptr) {
      throw ConfigError("cannot write '" + path.string() +
                        "': a .safetensors file holds named tensors only");
    }
    content.tensors.emplace_back(*name, *tensor);
  }
  if (entries == nullptr) {
    throw ConfigError("cannot write '" + path.string() + "': no dict");
  }
  formats::write_safetensors(path, content);
}

}  // namespace lockstep
