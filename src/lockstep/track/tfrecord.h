// The framing of TensorFlow's record files, which TensorBoard reads.
// Private to track/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::track {

// CRC-32C (Castagnoli).
uint32_t crc32c(std::string_view bytes);

// Length, checksum of the length, data, checksum of the data.
std::string tfrecord(std::string_view data);

}  // namespace lockstep::track
