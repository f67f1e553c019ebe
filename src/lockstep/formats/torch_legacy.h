// The files of torch before 1.6: pickles one after the other, then storages.
#pragma once

#include "lockstep/formats/mapped_file.h"
#include "lockstep/formats/value.h"

namespace lockstep {

bool is_legacy_torch_file(std::span<const std::byte> bytes);

// Throws FormatError.
Value read_legacy_torch_file(const MappedFile& file);

}  // namespace lockstep
