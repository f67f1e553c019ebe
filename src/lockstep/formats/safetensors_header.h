// The header of a .safetensors file: JSON with the position of each tensor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/formats/dtype.h"

namespace lockstep::formats {

constexpr std::string_view kSafetensorsMetadata = "__metadata__";

struct SafetensorsPlace {
  std::string name = {};
  const DTypeInfo* dtype = nullptr;
  std::vector<int64_t> shape = {};
  uint64_t begin = 0;  // Behind the header.
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsPlace> places = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// Reads it in one pass, without a tree of it in memory. Throws FormatError for
// all that the format does not allow, including a name that appears twice.
// Whether the places fit each other is not checked.
SafetensorsHeader parse_safetensors_header(std::string_view text);

}  // namespace lockstep::formats
