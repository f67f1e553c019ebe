// .npz files of numpy: named arrays.
#pragma once

#include <filesystem>

#include "lockstep/formats/byte_source.h"
#include "lockstep/formats/tensor_record.h"

namespace lockstep::formats {

// What np.savez and np.savez_compressed write, sorted by name, all of it read
// and checked. Throws IoError, and FormatError with the path for damaged files
// and for arrays of objects, records, text or big-endian numbers.
NamedTensors read_npz(const std::filesystem::path& path);

// The same; the FormatErrors name no path.
NamedTensors read_npz(const ByteSource& source);

// Writes atomically (AtomicFile), uncompressed. Throws IoError, and FormatError
// for a type that numpy lacks, such as bfloat16.
void write_npz(const std::filesystem::path& path, const NamedTensors& arrays);

}  // namespace lockstep::formats
