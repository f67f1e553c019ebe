// .safetensors files: named tensors and a few texts. They have no checksum.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/formats/byte_source.h"
#include "lockstep/formats/tensor_record.h"

namespace lockstep::formats {

struct Safetensors {
  NamedTensors tensors;
  // "format": "pt" is what other readers expect.
  std::vector<std::pair<std::string, std::string>> metadata = {
      {"format", "pt"}};
};

// Tensors are in the order in which they lie in the file; their bytes are read
// when they are asked for. Throws IoError, and FormatError with the path when
// the header does not describe the bytes exactly.
Safetensors read_safetensors(const std::filesystem::path& path);

// The same; the FormatErrors name no path.
Safetensors read_safetensors(const ByteSource& source);

// Writes atomically (AtomicFile); each tensor is written whole, also when it
// shares its storage with another. Throws IoError, and FormatError for a type
// that the format lacks or a name given twice.
void write_safetensors(const std::filesystem::path& path,
                       const Safetensors& content);

// Whether the bytes begin like such a file.
bool is_safetensors_file(const ByteSource& source);

}  // namespace lockstep::formats
