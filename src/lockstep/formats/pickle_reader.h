// Reads the pickles of torch.save and of numpy. Nothing in a pickle is
// executed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "lockstep/formats/byte_reader.h"
#include "lockstep/formats/value.h"

namespace lockstep::formats {

// Gives the storage with this key, which the pickle says has `num_bytes`; its
// bytes may be filled in later. Throws FormatError when there is none.
using FindStorage = std::function<std::shared_ptr<const ByteStorage>(
    std::string_view key, int64_t num_bytes)>;

// Reads one pickle (protocols 2 to 5) and leaves `in` behind it.
//
// Supports the functions and classes that rebuild tensors, parameters, numpy
// arrays of numbers (as tensors, in row-major order), dicts, sets, sizes and
// bytes; an object of any other class becomes Opaque, with everything in it.
// Throws FormatError for damaged bytes, for cycles, for trees deeper than 200,
// and when the objects would take more memory than 64 MiB and 16 times what
// `in` has left.
Value read_pickle(ByteReader& in, const FindStorage& find_storage);

// The same of a pickle that takes `file_bytes` in a file, where it may be
// compressed: these decide how much memory its objects may take.
Value read_pickle(ByteReader& in, const FindStorage& find_storage,
                  uint64_t file_bytes);

// The same of a pickle that has all its bytes in itself, such as pickle.dump
// writes. Throws FormatError for one that refers to a storage.
Value read_pickle(ByteReader& in);

}  // namespace lockstep::formats
