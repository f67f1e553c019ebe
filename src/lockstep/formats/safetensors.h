// .safetensors files: named tensors and a few texts. They have no checksum.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/formats/mapped_file.h"
#include "lockstep/formats/tensor_record.h"

namespace lockstep {

struct Safetensors {
  NamedTensors tensors;
  // "format": "pt" is what other readers expect.
  std::vector<std::pair<std::string, std::string>> metadata = {
      {"format", "pt"}};
};

// Tensors point into the mapped file, in the order in which they lie there.
// Throws IoError, and FormatError with the path when the header does not
// describe the bytes exactly.
Safetensors read_safetensors(const std::filesystem::path& path);

// The same of bytes in memory; the errors name no path.
Safetensors read_safetensors(const MappedFile& file);

// Writes atomically (AtomicFile); each tensor is written whole, also when it
// shares its storage with another. Throws IoError, and FormatError for a type
// that the format lacks or a name given twice.
void write_safetensors(const std::filesystem::path& path,
                       const Safetensors& content);

// Whether the bytes begin like such a file.
bool is_safetensors_file(std::span<const std::byte> bytes);

}  // namespace lockstep
