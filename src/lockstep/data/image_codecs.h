// One function per file format. Private to data/.
#pragma once

#include <optional>
#include <string_view>

#include "lockstep/data/image.h"

namespace lockstep::data {

// Both give the image's own kind: grey or RGB. Both throw FormatError.
Image decode_jpeg(std::string_view bytes,
                  std::optional<int> at_least_short_side);
Image decode_png(std::string_view bytes);
ImageSize size_of_jpeg(std::string_view bytes);
ImageSize size_of_png(std::string_view bytes);

// The numbers in a label map: see read_label_map().
Image decode_label_png(std::string_view bytes);

// Throws ConfigError unless sides, channels and number of pixels fit together.
void check_image(const Image& image);

// 1, 2, 4 or 8: what the decoder divided the sides of `full` by to make this
// image. Throws ConfigError when it is none of them.
int decoded_fraction(const Image& image, ImageSize full);

// Throws FormatError when the size is absurd, or more than `num_bytes` of this
// format can hold: before memory is taken for a size that a damaged header
// made up.
void check_image_size(uint64_t width, uint64_t height, uint64_t num_bytes,
                      uint64_t most_pixels_per_byte);

// Throws FormatError when decoding takes more memory than 64 MiB and 100 times
// the file's bytes: a flat image shrinks to a thousandth, and every thread of a
// loader holds one.
void check_decoded_size(ImageSize size, uint64_t memory_bytes,
                        uint64_t file_bytes);

}  // namespace lockstep::data
