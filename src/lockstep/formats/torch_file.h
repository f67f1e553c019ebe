// Checkpoint files of torch.save: .pt and .pth.
#pragma once

#include <filesystem>

#include "lockstep/formats/byte_source.h"
#include "lockstep/formats/value.h"

namespace lockstep::formats {

enum class TorchFileCheck {
  kAll,        // The CRC of all that is used: reads the whole file.
  kStructure,  // Only that of the pickle; tensors' bytes are not read.
};

// Reads the zip files that torch.save writes, and those of torch before 1.6 (or
// _use_new_zipfile_serialization=False), which have no CRC. Tensors' bytes are
// read when they are asked for; the file stays open until then. Throws IoError,
// and FormatError with the path for a file that is damaged or of another kind.
Value read_torch_file(const std::filesystem::path& path,
                      TorchFileCheck check = TorchFileCheck::kAll);

// The same; the FormatErrors name no path.
Value read_torch_file(const ByteSource& source,
                      TorchFileCheck check = TorchFileCheck::kAll);

// Writes a zip file that torch.load(weights_only=True) reads, atomically
// (AtomicFile). Throws IoError, and FormatError as write_pickle(); the old file
// then stays.
void write_torch_file(const std::filesystem::path& path, const Value& value);

// Whether the bytes begin like either kind of file.
bool is_torch_file(const ByteSource& source);

}  // namespace lockstep::formats
