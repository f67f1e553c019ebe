// Constants of the zip format for reader and writer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::formats::zip {

constexpr uint32_t kLocalHeader = 0x04034b50;  // "PK\3\4"
constexpr uint32_t kCentralHeader = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kZip64End = 0x06064b50;
constexpr uint32_t kZip64Locator = 0x07064b50;

constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kEndBytes = 22;
constexpr size_t kZip64EndBytes = 56;
constexpr size_t kZip64LocatorBytes = 20;

constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kSeeZip64 =
    0xffffffff;  // the true value is in an extra field

}  // namespace lockstep::formats::zip
