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
  write_torch_file(path, to_value(host_copy(tree, CpuTensors::kShare)));
}

Tree load_checkpoint(const std::filesystem::path& path) {
  const ByteSource source = open_source(path);
  try {
    if (is_torch_file(source) || !is_safetensors_file(source)) {
      // Checksums of tensors are compared while they are copied.
      return to_tree(read_torch_file(source, TorchFileCheck::kStructure));
    }
    Value::Dict tensors;
    for (auto& [name, tensor] : read_safetensors(source).tensors) {
      tensors.push_back({std::move(name), std::move(tensor)});
    }
    return to_tree(std::move(tensors));
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("'{}' is damaged or not a checkpoint: {}",
                                  path.string(), error.what()));
  }
}

void save_safetensors(const std::filesystem::path& path, const Tree& tensors) {
  const Value value = to_value(host_copy(tensors, CpuTensors::kShare));
  const auto* entries = value.get_if<Value::Dict>();
  Safetensors content;
  for (const auto& entry : entries ? *entries : Value::Dict{}) {
    const auto* name = entry.key.get_if<std::string>();
    const auto* tensor = entry.value.get_if<TensorRecord>();
    if (name == nullptr || tensor == nullptr) {
      throw ConfigError("cannot write '" + path.string() +
                        "': a .safetensors file holds named tensors only");
    }
    content.tensors.emplace_back(*name, *tensor);
  }
  if (entries == nullptr) {
    throw ConfigError("cannot write '" + path.string() + "': no dict");
  }
  write_safetensors(path, content);
}

}  // namespace lockstep
