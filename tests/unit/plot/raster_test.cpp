#include "lockstep/plot/raster.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/formats/png.h"
#include "lockstep/plot/font.h"
#include "lockstep/plot/svg.h"
#include "support/temp_dir.h"
#include "unit/plot/box_font.h"

namespace lockstep {
namespace {

constexpr plot::Color kBlack = {};
constexpr int kSide = 20;

// The darkness of each pixel: 255 is black.
std::vector<int> darkness(std::vector<plot::Shape> shapes) {
  const auto pixels = plot::to_pixels(
      {.width = kSide, .height = kSide, .shapes = std::move(shapes)});
  std::vector<int> dark;
  for (size_t i = 0; i < pixels.size(); i += 3) dark.push_back(255 - pixels[i]);
  return dark;
}

int at(const std::vector<int>& dark, int x, int y) {
  return dark[size_t(y * kSide + x)];
}

double sum(const std::vector<int>& dark) {
  double total = 0;
  for (const int value : dark) total += value;
  return total / 255;
}

TEST(Raster, AnEmptyDrawingIsWhite) { EXPECT_EQ(sum(darkness({})), 0); }

TEST(Raster, ABoxCoversItsAreaWithSmoothEdges) {
  const auto dark =
      darkness({plot::Rectangle{.corner = {2.5, 3}, .width = 4, .height = 2}});
  EXPECT_EQ(at(dark, 4, 3), 255);
  EXPECT_NEAR(at(dark, 2, 3), 128, 1);
  EXPECT_NEAR(at(dark, 6, 4), 128, 1);
  EXPECT_EQ(at(dark, 4, 5), 0);
  EXPECT_NEAR(sum(dark), 8, 0.05);
}

TEST(Raster, ALineIsAsDarkAsItIsLongAndWide) {
  for (const plot::Point end :
       {plot::Point{15, 10}, plot::Point{10, 15}, plot::Point{14, 13}}) {
    const plot::Point begin = {5, 10};
    const double length = std::hypot(end.x - begin.x, end.y - begin.y);
    const double radius = 1.5;
    const auto dark =
        darkness({plot::Line{.points = {begin, end}, .width = 3}});
    EXPECT_NEAR(sum(dark), 3 * length + 3.14159 * radius * radius, 1.5);
  }
}

TEST(Raster, ALineOneSeesThroughIsNotDarkerAtItsCorners) {
  const auto dark =
      darkness({plot::Line{.points = {{2, 10}, {10, 10}, {18, 10}},
                           .color = {0, 0, 0, 0.5},
                           .width = 4}});
  EXPECT_NEAR(at(dark, 10, 10), 128, 1);
  EXPECT_NEAR(at(dark, 5, 10), 128, 1);
}

TEST(Raster, ADiscIsRound) {
  const auto dark = darkness({plot::Disc{.center = {10, 10}, .radius = 5}});
  EXPECT_NEAR(sum(dark), 3.14159 * 25, 1);
  EXPECT_EQ(at(dark, 10, 10), 255);
  EXPECT_EQ(at(dark, 6, 6), at(dark, 13, 13));
  EXPECT_EQ(at(dark, 4, 4), 0);
}

TEST(Raster, TextsAreDrawnWhereTheyShould) {
  const auto left =
      darkness({plot::Label{.at = {1, 15}, .text = "l", .size = 14}});
  const auto right = darkness({plot::Label{
      .at = {19, 15}, .text = "l", .size = 14, .align = plot::Align::kRight}});
  EXPECT_GT(sum(left), 5);
  EXPECT_NEAR(sum(left), sum(right), 3);
  double left_half = 0;
  double right_half = 0;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide / 2; ++x) {
      left_half += at(left, x, y);
      right_half += at(right, kSide - 1 - x, y);
    }
  }
  EXPECT_GT(left_half, 0.99 * 255 * sum(left));
  EXPECT_GT(right_half, 0.99 * 255 * sum(right));
  EXPECT_NE(darkness({plot::Label{.at = {1, 15}, .text = "a", .size = 14}}),
            darkness({plot::Label{.at = {1, 15}, .text = "b", .size = 14}}));
}

TEST(Raster, WhatLiesOutsideIsCutOff) {
  const auto dark = darkness(
      {plot::Line{.points = {{-50, 10}, {90, 10}}, .width = 2},
       plot::Rectangle{{-9, -9}, 5, 5, kBlack}, plot::Disc{{100, 5}, 9, kBlack},
       plot::Label{.at = {-30, 300}, .text = "far away"}});
  EXPECT_NEAR(sum(dark), 2 * kSide, 0.1);
}

TEST(Raster, ThePngHasTheSizeOfTheDrawing) {
  const formats::PngHeader header =
      formats::read_png_header(plot::to_png({.width = 31, .height = 17}));
  EXPECT_EQ(header.width, 31);
  EXPECT_EQ(header.height, 17);
  EXPECT_EQ(header.channels, 3);
}

TEST(Font, WidthsAddUpAndOddTextsAreNoProblem) {
  const plot::Font font;
  EXPECT_EQ(font.width("", 12), 0);
  EXPECT_NEAR(font.width("00", 12), 2 * font.width("0", 12), 1e-6);
  EXPECT_NEAR(font.width("loss", 24), 2 * font.width("loss", 12), 1e-3);
  EXPECT_GT(font.width("W", 12), font.width("i", 12));
  for (const char* odd :
       {"\xff\xfe", "\xf0\x9f\x98\x80", "\xe4\xbd\xa0", "\n"}) {
    EXPECT_GE(font.width(odd, 12), 0);
    font.glyphs(odd, 12, {3, 3});
  }
}

TEST(Font, LettersThatDejaVuLacksComeFromTheFontThatIsFound) {
  const testing::TempDir folder;
  const std::string file =
      folder.write("box.ttf", testing::box_font(U'\u4f60'));
  int num_asked = 0;
  const plot::Font font([&](char32_t character) {
    ++num_asked;
    EXPECT_EQ(character, U'\u4f60');
    return plot::FontFile{.path = file};
  });
  const std::string letter = "\xe4\xbd\xa0";
  EXPECT_EQ(font.missing("plain " + letter), "");
  ASSERT_EQ(font.glyphs(letter, 20, {5, 30}).size(), 1U);
  const plot::Glyph box = font.glyphs(letter, 20, {5, 30})[0];
  EXPECT_EQ(box.left, 5);
  EXPECT_EQ(box.width, 20);
  EXPECT_EQ(box.height, 20);
  EXPECT_NEAR(font.width(letter, 20), 20, 1e-4);
  EXPECT_EQ(num_asked, 1);
}

TEST(Font, LettersThatNoFontHasAreNamedAndDrawnAsQuestionMarks) {
  const testing::TempDir folder;
  const std::string file = folder.write("box.ttf", testing::box_font(U'x'));
  for (const plot::FontFinder& finder :
       {plot::FontFinder(),
        plot::FontFinder([](char32_t) { return std::nullopt; }),
        plot::FontFinder(
            [](char32_t) { return plot::FontFile{.path = "/no/such"}; }),
        plot::FontFinder(
            [](char32_t) { return plot::FontFile{.path = "/dev/null"}; }),
        plot::FontFinder(
            [&](char32_t) { return plot::FontFile{.path = file}; }),
        plot::FontFinder([&](char32_t) {
          return plot::FontFile{.path = file, .index = 7};
        })}) {
    const plot::Font font(finder);
    const std::string text = "a\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xbd\xa0";
    EXPECT_EQ(font.missing(text), "\xe4\xbd\xa0\xe5\xa5\xbd");
    EXPECT_EQ(font.width(text, 12), font.width("a???", 12));
  }
}

TEST(Raster, ImagesAreEnlargedWithoutBlur) {
  const auto dark = darkness({plot::Image{.corner = {2, 3},
                                          .width = 8,
                                          .height = 4,
                                          .columns = 2,
                                          .rows = 1,
                                          .pixels = {0, 0, 0, 200, 9, 9}}});
  EXPECT_EQ(at(dark, 1, 3), 0);
  EXPECT_EQ(at(dark, 2, 3), 255);
  EXPECT_EQ(at(dark, 5, 6), 255);
  EXPECT_EQ(at(dark, 6, 3), 55);
  EXPECT_EQ(at(dark, 9, 6), 55);
  EXPECT_EQ(at(dark, 10, 6), 0);
  EXPECT_EQ(at(dark, 5, 7), 0);
}

TEST(Svg, ImagesAreInside) {
  const std::string svg =
      plot::to_svg({.width = 9,
                    .height = 9,
                    .shapes = {plot::Image{.width = 8,
                                           .height = 8,
                                           .columns = 1,
                                           .rows = 1,
                                           .pixels = {1, 2, 3}}}});
  EXPECT_NE(svg.find("image-rendering:pixelated"), std::string::npos);
  EXPECT_NE(svg.find("href=\"data:image/png;base64,iVBOR"), std::string::npos);
}

TEST(Svg, TextsAreTextsAndCannotBreakTheFile) {
  const std::string svg = plot::to_svg(
      {.width = 5,
       .height = 6,
       .shapes = {plot::Label{.text = "a<b>&\"\x01\xff"},
                  plot::Line{.points = {{1, 2}, {3, 4}}, .width = 2.5},
                  plot::Disc{.color = {255, 0, 16, 0.5}}, plot::Rectangle{}}});
  EXPECT_NE(svg.find(">a&lt;b&gt;&amp;&quot; \xef\xbf\xbd</text>"),
            std::string::npos);
  EXPECT_NE(svg.find("points=\"1.0,2.0 3.0,4.0 \""), std::string::npos);
  EXPECT_NE(svg.find("fill=\"#ff0010\" fill-opacity=\"0.5\""),
            std::string::npos);
  EXPECT_NE(svg.find("width=\"5\" height=\"6\""), std::string::npos);
}

}  // namespace
}  // namespace lockstep
