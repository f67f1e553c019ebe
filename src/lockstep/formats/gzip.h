// Files compressed by gzip.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::formats {

// Whether the bytes begin as a gzip file does.
bool is_gzip(std::string_view bytes);

// All members of a gzip file, one behind the other. Throws FormatError when it
// is damaged or truncated, or its contents are larger than `max_bytes`.
std::string gunzip(std::string_view bytes, uint64_t max_bytes);

}  // namespace lockstep::formats
