// Checkpoint files of torch.save: .pt and .pth.
#pragma once

#include <filesystem>

#include "lockstep/formats/mapped_file.h"
#include "lockstep/formats/value.h"

namespace lockstep {

enum class TorchFileCheck {
  kAll,        // The CRC of all that is used: reads the whole file.
  kStructure,  // Only that of the pickle; tensors' bytes are not read.
};

// Reads the zip files that torch.save writes, and those of torch before 1.6 (or
// _use_new_zipfile_serialization=False), which have no CRC. Tensors point into
// the mapped file, which they keep alive. Throws IoError, and FormatError with
// the path for a file that is damaged or of another kind.
Value read_torch_file(const std::filesystem::path& path,
                      TorchFileCheck check = TorchFileCheck::kAll);

// The same of bytes in memory; the errors name no path.
Value read_torch_file(MappedFile file,
                      TorchFileCheck check = TorchFileCheck::kAll);

// Writes a zip file that torch.load(weights_only=True) reads, atomically
// (AtomicFile). Throws IoError, and FormatError as write_pickle(); the old file
// then stays.
void write_torch_file(const std::filesystem::path& path, const Value& value);

// Whether the bytes begin like either kind of file.
bool is_torch_file(std::span<const std::byte> bytes);

}  // namespace lockstep
