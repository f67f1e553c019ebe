// Writing GIF animations.
//
// Free functions without state: safe to call from several threads at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::formats {

// 8 bits each of red, green and blue, interleaved; rows from top to bottom,
// frames one after the other.
struct GifFrames {
  int width = 0;
  int height = 0;
  int num_frames = 0;
  std::span<const uint8_t> pixels = {};
  // Hundredths of a second that a frame stays, and the last one.
  int delay = 8;
  int last_delay = 200;
};

// The bytes of a GIF file that repeats for ever. Colours are brought to the
// nearest of 6 x 7 x 6 levels. Throws ConfigError unless sides, frames and
// number of pixels fit together.
std::string encode_gif(const GifFrames& animation);

}  // namespace lockstep::formats
