// .npz files of numpy: named arrays.
#pragma once

#include <filesystem>

#include "lockstep/formats/mapped_file.h"
#include "lockstep/formats/tensor_record.h"

namespace lockstep {

// What np.savez and np.savez_compressed write, sorted by name. Arrays that are
// not compressed point into the mapped file. Throws IoError, and FormatError
// with the path for damaged files and for arrays of objects, records, text or
// big-endian numbers.
NamedTensors read_npz(const std::filesystem::path& path);

// The same of bytes in memory; the errors name no path.
NamedTensors read_npz(MappedFile file);

// Writes atomically (AtomicFile), uncompressed. Throws IoError, and FormatError
// for a type that numpy lacks, such as bfloat16.
void write_npz(const std::filesystem::path& path, const NamedTensors& arrays);

}  // namespace lockstep
