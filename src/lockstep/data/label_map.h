// Maps of class numbers or distances: one number per pixel, as PNG files.
//
// Free functions without state: safe to call from several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/image.h"

namespace lockstep::data {

// A pixel without a label.
constexpr uint8_t kNoLabel = 255;

// One channel of numbers. A PNG file with a palette gives the numbers of its
// colours (so are VOC's SegmentationClass files), 8-bit grey its levels, and
// RGB with three equal channels one of these. Throws FormatError for every
// other file, since it would have to be guessed what its levels mean; with a
// path also IoError, and errors name it.
Image decode_label_map(std::string_view bytes);
Image read_label_map(const std::filesystem::path& path);

// Pascal VOC's 256 colours, red, green and blue of each.
std::vector<uint8_t> voc_palette();

// A PNG file with a palette, which shows its labels in colours and keeps their
// numbers. Throws ConfigError for labels of several channels, or beyond the
// palette.
std::string encode_palette_png(const Image& labels,
                               std::span<const uint8_t> palette);

}  // namespace lockstep::data
