// Files that our writers do not write: those of old torch, and zip archives
// with any header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/formats/value.h"

namespace lockstep::testing {

// As torch before 1.6 saved the value; its tensors must be float32.
std::string old_torch_file(const formats::Value& value);

struct RawZipEntry {
  std::string name;
  std::string content;
  // Deflated by zlib instead of stored.
  bool is_deflated = false;
  // What the headers say instead of the truth.
  std::optional<uint32_t> claimed_size = {};
  // Where the local header lies according to the directory.
  std::optional<uint32_t> claimed_offset = {};
};

// An archive with these entries, padded by nothing.
std::string raw_zip(const std::vector<RawZipEntry>& entries);

// One entry as raw_zip() lays it out in front of the directory.
std::string raw_zip_entry(const RawZipEntry& entry);

}  // namespace lockstep::testing
