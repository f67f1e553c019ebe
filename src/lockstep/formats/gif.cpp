#include "lockstep/formats/gif.h"

#include <fmt/format.h>
#include <gif_lib.h>

#include <array>
#include <memory>
#include <vector>

#include "lockstep/error.h"

namespace lockstep::formats {
namespace {

constexpr int kMaxSide = 65535;  // Two bytes in the file.
// The eye is most sensitive to green.
constexpr int kRed = 6;
constexpr int kGreen = 7;
constexpr int kBlue = 6;

int level(uint8_t value, int count) {
  return (value * (count - 1) + 127) / 255;
}

GifByteType shade(int number, int count) {
  return static_cast<GifByteType>(number * 255 / (count - 1));
}

// Index 0 is black, as are those that are left over at the end.
std::array<GifColorType, 256> palette() {
  std::array<GifColorType, 256> colours = {};
  for (int i = 0; i < kRed * kGreen * kBlue; ++i) {
    colours[static_cast<size_t>(i)] = {
        .Red = shade(i / (kGreen * kBlue), kRed),
        .Green = shade(i / kBlue % kGreen, kGreen),
        .Blue = shade(i % kBlue, kBlue)};
  }
  return colours;
}

GifPixelType index_of(const uint8_t* pixel) {
  return static_cast<GifPixelType>(
      (level(pixel[0], kRed) * kGreen + level(pixel[1], kGreen)) * kBlue +
      level(pixel[2], kBlue));
}

int append_gif_bytes(GifFileType* gif, const GifByteType* from, int count) {
  static_cast<std::string*>(gif->UserData)
      ->append(reinterpret_cast<const char*>(from), static_cast<size_t>(count));
  return count;
}

void require_gif_ok(int result) {
  // Writing to memory fails for want of memory alone.
  if (result != GIF_OK) throw std::bad_alloc();
}

struct CloseGif {
  void operator()(GifFileType* gif) const { EGifCloseFile(gif, nullptr); }
};
using GifWriter = std::unique_ptr<GifFileType, CloseGif>;

void write_header(GifFileType* gif, const GifFrames& animation) {
  const auto colours = palette();
  const std::unique_ptr<ColorMapObject, decltype(&GifFreeMapObject)> map(
      GifMakeMapObject(256, colours.data()), GifFreeMapObject);
  if (map == nullptr) throw std::bad_alloc();
  EGifSetGifVersion(gif, true);
  require_gif_ok(EGifPutScreenDesc(gif, animation.width, animation.height, 8, 0,
                                   map.get()));
  const std::array<GifByteType, 3> forever = {1, 0, 0};
  require_gif_ok(EGifPutExtensionLeader(gif, APPLICATION_EXT_FUNC_CODE));
  require_gif_ok(EGifPutExtensionBlock(gif, 11, "NETSCAPE2.0"));
  require_gif_ok(EGifPutExtensionBlock(gif, 3, forever.data()));
  require_gif_ok(EGifPutExtensionTrailer(gif));
}

void write_frame(GifFileType* gif, const GifFrames& animation, int frame) {
  const bool is_last = frame + 1 == animation.num_frames;
  const GraphicsControlBlock control = {
      .DisposalMode = DISPOSE_DO_NOT,
      .UserInputFlag = false,
      .DelayTime = is_last ? animation.last_delay : animation.delay,
      .TransparentColor = NO_TRANSPARENT_COLOR};
  std::array<GifByteType, 4> extension = {};
  EGifGCBToExtension(&control, extension.data());
  require_gif_ok(
      EGifPutExtension(gif, GRAPHICS_EXT_FUNC_CODE, 4, extension.data()));
  require_gif_ok(EGifPutImageDesc(gif, 0, 0, animation.width, animation.height,
                                  false, nullptr));
  const auto width = static_cast<size_t>(animation.width);
  const auto height = static_cast<size_t>(animation.height);
  const uint8_t* pixel =
      animation.pixels.data() + static_cast<size_t>(frame) * width * height * 3;
  std::vector<GifPixelType> row(width);
  for (size_t y = 0; y < height; ++y) {
    for (GifPixelType& index : row) {
      index = index_of(pixel);
      pixel += 3;
    }
    require_gif_ok(EGifPutLine(gif, row.data(), animation.width));
  }
}

void check(const GifFrames& animation) {
  const auto side_fits = [](int side) { return side >= 1 && side <= kMaxSide; };
  if (!side_fits(animation.width) || !side_fits(animation.height) ||
      animation.num_frames < 1 ||
      animation.pixels.size() != size_t(animation.width) *
                                     size_t(animation.height) *
                                     size_t(animation.num_frames) * 3) {
    throw ConfigError(fmt::format(
        "a GIF of {} frames of {} x {} pixels cannot be made of {} bytes",
        animation.num_frames, animation.width, animation.height,
        animation.pixels.size()));
  }
}

}  // namespace

std::string encode_gif(const GifFrames& animation) {
  check(animation);
  std::string bytes;
  int error = 0;
  GifWriter writer(EGifOpen(&bytes, append_gif_bytes, &error));
  if (writer == nullptr) throw std::bad_alloc();
  write_header(writer.get(), animation);
  for (int frame = 0; frame < animation.num_frames; ++frame) {
    write_frame(writer.get(), animation, frame);
  }
  writer.reset();  // Writes the end.
  return bytes;
}

}  // namespace lockstep::formats
