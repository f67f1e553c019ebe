// Common to the fuzz targets: how bytes reach a reader, and what may leave it.
//
// A target is one function over bytes. A reader may refuse them by an error
// that a user can act on; any other exception, a broken promise, a report of a
// sanitizer or too much memory is a crash.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/formats/byte_source.h"

namespace lockstep::fuzz {

// Not copied: the fuzzer's buffer has the input's exact size, so that
// AddressSanitizer sees every byte that is read too much.
inline formats::ByteSource as_file(const uint8_t* data, size_t size) {
  return formats::ByteSource(std::as_bytes(std::span(data, size)));
}

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A broken promise; std::abort() is what the fuzzer reports.
inline void require(bool holds) {
  if (!holds) std::abort();
}

// 0, which tells the fuzzer that the input may be kept.
template <typename Read>
int read_or_refuse(const Read& read) {
  try {
    read();
  } catch (const FormatError&) {
  } catch (const ConfigError&) {
  } catch (const IoError&) {
  }
  return 0;
}

}  // namespace lockstep::fuzz
