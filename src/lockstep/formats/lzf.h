// LZF, the compression that h5py calls "lzf".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::formats {

// The bytes that were compressed, exactly `size` of them. Throws FormatError
// for other numbers and for damaged input. Memory grows with the bytes that
// come out, not with `size`.
std::vector<uint8_t> decompress_lzf(std::span<const uint8_t> bytes,
                                    size_t size);

}  // namespace lockstep::formats
