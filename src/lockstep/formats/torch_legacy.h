// The files of torch before 1.6: pickles one after the other, then storages.
#pragma once

#include <string_view>

#include "lockstep/formats/byte_source.h"
#include "lockstep/formats/value.h"

namespace lockstep::formats {

// How such a file begins: the pickle of the number 0x1950a86a20f9469cfc6c.
constexpr std::string_view kLegacyTorchMagic{
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15};

// Throws FormatError and IoError.
Value read_legacy_torch_file(const ByteSource& source);

}  // namespace lockstep::formats
