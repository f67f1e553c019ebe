#include "lockstep/track/tfrecord.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace lockstep::track {
namespace {

template <typename Number>
void append_number(std::string& to, Number number) {
  for (size_t i = 0; i < sizeof(Number); ++i) {
    to += static_cast<char>(number >> (8 * i) & 0xff);
  }
}

// A checksum of bytes that hold checksums would be weak, so it is stored
// rotated and shifted.
uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;
  uint32_t state = ~0U;
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kMostAtOnce);
    // ISA-L reads only; it lacks the const.
    auto* data =
        reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(count), state);
    bytes.remove_prefix(count);
  }
  return ~state;
}

std::string tfrecord(std::string_view data) {
  std::string record;
  record.reserve(data.size() + 16);
  append_number(record, uint64_t{data.size()});
  append_number(record, masked_crc32c(record));
  record += data;
  append_number(record, masked_crc32c(data));
  return record;
}

}  // namespace lockstep::track
