#include "lockstep/data/image.h"

#include <gtest/gtest.h>

#include <random>

#include "lockstep/error.h"
#include "support/images.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::contains;
using testing::encode_jpeg;
using testing::JpegKind;
using testing::largest_difference;
using testing::test_image;

// The message of the FormatError that decoding must throw.
std::string format_error(std::string_view bytes) {
  try {
    data::decode_image(bytes);
  } catch (const FormatError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no FormatError";
  return "";
}

// Red in all channels, or the colours at 80 %: what encode_jpeg() stores.
data::Image stored(const data::Image& original, JpegKind kind) {
  data::Image image = original;
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    if (kind == JpegKind::kGrey) image.pixels[i] = original.pixels[i / 3 * 3];
    if (kind == JpegKind::kCmyk || kind == JpegKind::kYcck) {
      image.pixels[i] = uint8_t(original.pixels[i] * 0.8);
    }
  }
  return image;
}

double mean_difference(const data::Image& a, const data::Image& b) {
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    sum += std::abs(a.pixels[i] - b.pixels[i]);
  }
  return sum / double(a.pixels.size());
}

TEST(Image, ReadsEveryKindOfJpegAsRgb) {
  const data::Image original = test_image(101, 67);
  for (const auto kind : {JpegKind::kBaseline, JpegKind::kProgressive,
                          JpegKind::kGrey, JpegKind::kCmyk, JpegKind::kYcck}) {
    const data::Image image = data::decode_image(encode_jpeg(original, kind));
    ASSERT_EQ(image.width, 101);
    ASSERT_EQ(image.height, 67);
    ASSERT_EQ(image.channels, 3);
    EXPECT_LT(mean_difference(image, stored(original, kind)), 2.5)
        << "kind " << int(kind);
  }
}

TEST(Image, ReadsEveryKindOfPngAsRgb) {
  for (const auto& png : testing::png_of_each_kind()) {
    EXPECT_EQ(largest_difference(data::decode_image(png.bytes), png.expected),
              0)
        << png.name;
  }
}

TEST(Image, GivesGreyWhenAskedFor) {
  data::Image color = data::make_image(2, 1, 3);
  color.pixels = {255, 0, 0, 10, 200, 30};
  const data::Image grey =
      data::decode_image(data::encode_png(color), {.channels = 1});
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(grey.pixels, (std::vector<uint8_t>{76, 124}));
  EXPECT_EQ(data::decode_image(data::encode_png(grey), {.channels = 1}).pixels,
            grey.pixels);
  EXPECT_THROW(data::decode_image(data::encode_png(grey), {.channels = 4}),
               ConfigError);
}

TEST(Image, DecodesAJpegNoSmallerThanAskedFor) {
  const std::string bytes =
      encode_jpeg(test_image(500, 375), JpegKind::kBaseline);
  const auto height = [&](int least) {
    return data::decode_image(bytes, {.at_least_short_side = least}).height;
  };
  EXPECT_EQ(height(1), 47);
  EXPECT_EQ(height(46), 47);
  EXPECT_EQ(height(64), 94);
  EXPECT_EQ(height(93), 94);
  EXPECT_EQ(height(94), 188);
  EXPECT_EQ(height(187), 188);
  EXPECT_EQ(height(188), 375);
  EXPECT_EQ(height(1000), 375);
  EXPECT_EQ(data::decode_image(bytes).height, 375);
}

TEST(Image, TellsTheSizeWithoutDecoding) {
  const data::Image original = test_image(31, 20);
  for (const std::string& bytes : {encode_jpeg(original, JpegKind::kBaseline),
                                   data::encode_png(original)}) {
    const auto header = std::string_view(bytes).substr(0, bytes.size() - 20);
    EXPECT_EQ(data::size_of_image(header).width, 31);
    EXPECT_EQ(data::size_of_image(header).height, 20);
  }
  EXPECT_THROW(data::size_of_image("no image"), FormatError);
}

TEST(Image, PngComesBackAsItWasWritten) {
  const testing::TempDir folder;
  for (const int channels : {1, 3}) {
    data::Image image = test_image(31, 20);
    image.channels = channels;
    image.width = 93 / channels;
    data::write_png(folder.path() / "image.png", image);
    const data::Image back =
        data::read_image(folder.path() / "image.png", {.channels = channels});
    EXPECT_EQ(largest_difference(back, image), 0);
  }
}

TEST(Image, RefusesToWriteWhatIsNoImage) {
  data::Image image = data::make_image(3, 3, 3);
  image.pixels.pop_back();
  EXPECT_THROW(data::encode_png(image), ConfigError);
  EXPECT_THROW(data::encode_png(data::Image{}), ConfigError);
  EXPECT_THROW(data::make_image(3, 3, 2), ConfigError);
  EXPECT_THROW(data::make_image(0, 3, 3), ConfigError);
}

TEST(Image, ErrorsSayWhatIsWrong) {
  EXPECT_TRUE(contains(format_error(""), "0 bytes"));
  EXPECT_TRUE(contains(format_error("GIF89a..."),
                       "neither a JPEG nor a PNG image: it starts with the "
                       "bytes 47 49 46 38 39 61 2e 2e"));
  EXPECT_TRUE(contains(format_error("\xff\xd8\xff"), "JPEG"));
  EXPECT_TRUE(
      contains(format_error("\x89PNG\r\n\x1a\n"), "the file ends too early"));
}

TEST(Image, AFileThatWasCutOffIsAnError) {
  const data::Image original = test_image(64, 48);
  for (const std::string& bytes :
       {encode_jpeg(original, JpegKind::kBaseline),
        encode_jpeg(original, JpegKind::kProgressive),
        data::encode_png(original)}) {
    for (const size_t left_out : {size_t{1}, size_t{13}, bytes.size() / 2}) {
      format_error(std::string_view(bytes).substr(0, bytes.size() - left_out));
    }
  }
}

std::string big_endian(uint32_t value) {
  return {char(value >> 24), char(value >> 16), char(value >> 8), char(value)};
}

std::string png_chunk(const std::string& name_and_data) {
  uint32_t crc = ~0u;
  for (const char byte : name_and_data) {
    crc ^= uint8_t(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
    }
  }
  return big_endian(uint32_t(name_and_data.size() - 4)) + name_and_data +
         big_endian(~crc);
}

// Grey, 8 bits, and the start of the pixels.
std::string png_header(uint32_t width, uint32_t height) {
  const std::string kind("\x08\0\0\0\0", 5);
  return "\x89PNG\r\n\x1a\n" +
         png_chunk("IHDR" + big_endian(width) + big_endian(height) + kind) +
         png_chunk("IDATx");
}

TEST(Image, AnAbsurdSizeIsAnErrorBeforeMemoryIsTaken) {
  std::string jpeg = encode_jpeg(test_image(64, 48), JpegKind::kBaseline);
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\x00\xff\x00", 4);
  EXPECT_TRUE(contains(format_error(jpeg), "65280x65280"));
  jpeg.replace(frame + 5, 4, "\x20\x00\x20\x00", 4);
  EXPECT_TRUE(contains(format_error(jpeg), "cannot hold the 8192x8192"));
  EXPECT_TRUE(contains(format_error(png_header(20000, 20000)),
                       "20000x20000 pixels: at least 1 and at most"));
  EXPECT_TRUE(contains(format_error(png_header(8000, 8000)),
                       "cannot hold the 8000x8000"));
}

// Flat images shrink to a thousandth: each thread of a loader would hold one.
TEST(Image, AFileTakesMemoryOfItsOwnOrder) {
  const std::string kind("\x08\x02\0\0\0", 5);  // RGB
  const std::string png =
      "\x89PNG\r\n\x1a\n" +
      png_chunk("IHDR" + big_endian(16384) + big_endian(16384) + kind) +
      png_chunk("IDAT" + std::string(300'000, 'x'));
  EXPECT_TRUE(contains(format_error(png), "takes 768.0 MiB of memory"));
  EXPECT_EQ(data::size_of_image(png).width, 16384);

  const data::Image flat = data::make_image(4000, 4000, 3);
  EXPECT_EQ(data::decode_image(data::encode_png(flat)).pixels, flat.pixels);

  std::string jpeg = encode_jpeg(test_image(64, 48), JpegKind::kProgressive);
  const size_t frame = jpeg.find("\xff\xc2");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\x20\x00\x20\x00", 4);
  jpeg += std::string(200'000, '\0');
  EXPECT_TRUE(contains(format_error(jpeg), "8192x8192 pixels takes 3"));
}

TEST(Image, BytesBetweenSegmentsDoNotHarm) {
  const data::Image original = test_image(64, 48);
  std::string jpeg = encode_jpeg(original, JpegKind::kBaseline);
  const data::Image image = data::decode_image(jpeg);
  jpeg.insert(jpeg.size() - 2, "\x01\x02");
  EXPECT_EQ(largest_difference(data::decode_image(jpeg), image), 0);
}

TEST(Image, ReadingNamesTheFile) {
  const testing::TempDir folder;
  const std::string path = folder.write("broken.jpg", "\xff\xd8\xff");
  try {
    data::read_image(path);
    ADD_FAILURE() << "no error";
  } catch (const FormatError& error) {
    EXPECT_TRUE(contains(error.what(), path)) << error.what();
  }
  EXPECT_THROW(data::read_image(folder.path() / "missing.png"), IoError);
}

// Whatever the bytes are, decoding gives an image or a FormatError.
void damage_and_decode(const std::string& good, unsigned seed) {
  std::mt19937 random(seed);
  int failures = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    std::string bytes = good;
    const size_t num_changes = 1 + random() % 8;
    for (size_t i = 0; i < num_changes; ++i) {
      bytes[random() % bytes.size()] = char(random());
    }
    if (turn % 4 == 0) bytes.resize(random() % bytes.size());
    try {
      const data::Image image = data::decode_image(bytes);
      ASSERT_EQ(image.pixels.size(), image.row_bytes() * size_t(image.height));
    } catch (const FormatError&) {
      ++failures;
    }
  }
  EXPECT_GT(failures, 500);
}

TEST(Image, DamagedBytesAreNeverMoreThanAFormatError) {
  const data::Image original = test_image(48, 40);
  unsigned seed = 1;
  for (const auto kind :
       {JpegKind::kBaseline, JpegKind::kProgressive, JpegKind::kYcck}) {
    damage_and_decode(encode_jpeg(original, kind), seed++);
  }
  damage_and_decode(data::encode_png(original), seed++);
  for (const auto& png : testing::png_of_each_kind()) {
    if (png.name == "palette-4-interlaced") {
      damage_and_decode(png.bytes, seed++);
    }
  }
}

}  // namespace
}  // namespace lockstep
