#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/formats/png.h"
#include "lockstep/plot/terminal_graphics.h"
#include "lockstep/plot/terminal_text.h"

namespace lockstep {
namespace {

using plot::TerminalColors;
using plot::TerminalImages;

TerminalImages images_for(const base::Environment& environment) {
  return plot::terminal_ability(environment, 80).images;
}

TEST(TerminalAbility, TerminalsThatShowImagesAreKnownByTheirVariables) {
  EXPECT_EQ(images_for({{"TERM", "xterm-kitty"}}), TerminalImages::kKitty);
  EXPECT_EQ(images_for({{"TERM", "xterm-256color"}, {"KITTY_WINDOW_ID", "1"}}),
            TerminalImages::kKitty);
  EXPECT_EQ(images_for({{"TERM_PROGRAM", "ghostty"}}), TerminalImages::kKitty);
  for (const char* program : {"iTerm.app", "WezTerm", "mintty"}) {
    EXPECT_EQ(images_for({{"TERM_PROGRAM", program}}), TerminalImages::kIterm);
  }
  EXPECT_EQ(images_for({{"LC_TERMINAL", "iTerm2"}}), TerminalImages::kIterm);
  EXPECT_EQ(images_for({{"TERM", "xterm-256color"}}), TerminalImages::kNone);
  EXPECT_EQ(images_for({{"TERM_PROGRAM", "vscode"}}), TerminalImages::kNone);
  EXPECT_EQ(images_for({}), TerminalImages::kNone);
}

TEST(TerminalAbility, NoImagesInsideOfTmuxAndScreen) {
  EXPECT_EQ(images_for({{"TERM", "screen-256color"}, {"KITTY_WINDOW_ID", "1"}}),
            TerminalImages::kNone);
  EXPECT_EQ(images_for({{"TMUX", "/tmp/1"}, {"TERM_PROGRAM", "iTerm.app"}}),
            TerminalImages::kNone);
}

TEST(TerminalAbility, ColorsFollowTheVariables) {
  const auto colors = [](const base::Environment& environment) {
    return plot::terminal_ability(environment, 80).colors;
  };
  EXPECT_EQ(colors({{"TERM", "xterm"}, {"COLORTERM", "truecolor"}}),
            TerminalColors::k24Bit);
  EXPECT_EQ(colors({{"TERM", "xterm-256color"}}), TerminalColors::k256);
  EXPECT_EQ(colors({{"TERM", "vt100"}}), TerminalColors::kNone);
  EXPECT_EQ(colors({{"COLORTERM", "truecolor"}, {"NO_COLOR", "1"}}),
            TerminalColors::kNone);
}

std::string small_png(int width) {
  const std::vector<uint8_t> pixels(size_t(width) * 60 * 3, 7);
  return formats::encode_png({.width = width, .height = 60, .pixels = pixels});
}

TEST(TerminalImage, KittyGetsPiecesOfWhichTheLastIsMarked) {
  // Random levels do not shrink, so that there are several pieces.
  std::vector<uint8_t> pixels(100 * 60 * 3);
  uint32_t state = 1;
  for (uint8_t& level : pixels) {
    state = state * 1664525 + 1013904223;
    level = static_cast<uint8_t>(state >> 24);
  }
  const std::string shown = plot::terminal_image(
      formats::encode_png({.width = 100, .height = 60, .pixels = pixels}),
      TerminalImages::kKitty, 80);
  EXPECT_TRUE(shown.starts_with("\x1b_Gf=100,a=T,q=2,c=11,m=1;iVBOR"));
  EXPECT_NE(shown.find("\x1b\\\x1b_Gm=0;"), std::string::npos);
  EXPECT_TRUE(shown.ends_with("\x1b\\\n"));
  EXPECT_TRUE(plot::terminal_image(small_png(9), TerminalImages::kKitty, 80)
                  .starts_with("\x1b_Gf=100,a=T,q=2,c=1,m=0;"));
}

TEST(TerminalImage, ItermGetsTheFileScaledToTheWindow) {
  const std::string png = small_png(1800);
  EXPECT_TRUE(plot::terminal_image(png, TerminalImages::kIterm, 80)
                  .starts_with("\x1b]1337;File=inline=1;size=" +
                               std::to_string(png.size()) + ";width=80;"));
  EXPECT_EQ(plot::terminal_image(png, TerminalImages::kNone, 80), "");
}

// Three images of 2 x 2 pixels: white, black, red above blue.
formats::ReadGrid three_images() {
  formats::ReadGrid read{.grid = {.rows = 3,
                                  .columns = 1,
                                  .labels = {"w", "blackish", "\x1b[2J"}}};
  const std::vector<uint8_t> white(12, 255);
  const std::vector<uint8_t> black(12, 0);
  const std::vector<uint8_t> both = {255, 0, 0,   255, 0, 0,
                                     0,   0, 255, 0,   0, 255};
  for (const auto& pixels : {white, black, both}) {
    read.images.push_back({.width = 2, .height = 2, .pixels = pixels});
  }
  return read;
}

TEST(TerminalText, HalfBlocksHaveTwoColors) {
  const std::string text = plot::text_samples(
      three_images(),
      {.colors = TerminalColors::k24Bit, .has_blocks = true, .columns = 80});
  EXPECT_NE(text.find("\x1b[38;2;255;0;0m\x1b[48;2;0;0;255m\xe2\x96\x80"),
            std::string::npos);
  const std::string fewer = plot::text_samples(
      three_images(),
      {.colors = TerminalColors::k256, .has_blocks = true, .columns = 80});
  EXPECT_NE(fewer.find("\x1b[38;5;196m\x1b[48;5;21m\xe2\x96\x80"),
            std::string::npos);
}

TEST(TerminalText, WithoutColorsShadesOfAsciiStandBelowTheNames) {
  EXPECT_EQ(plot::text_samples(three_images(), {.columns = 80}),
            "w   bl  \\x\n"
            "@@      ::\n\n");
  // As many side by side as fit.
  EXPECT_EQ(plot::text_samples(three_images(), {.columns = 6}),
            "w   bl\n@@    \n\n"
            "\\x\n::\n\n");
}

TEST(TerminalText, LargeImagesBecomeSmaller) {
  formats::ReadGrid read{
      .grid = {.rows = 1, .columns = 1, .labels = {"large"}}};
  read.images.push_back({.width = 256,
                         .height = 256,
                         .pixels = std::vector<uint8_t>(256 * 256 * 3, 255)});
  const std::string text = plot::text_samples(read, {.columns = 80});
  EXPECT_EQ(std::count(text.begin(), text.end(), '@'), 24 * 12);
}

TEST(TerminalText, ACurveFallsFromLeftToRight) {
  plot::Series series;
  EXPECT_EQ(plot::text_curve("loss", series, {.columns = 40}), "");
  for (int step = 0; step <= 100; ++step) series.add(step, 100.0 - step);
  const std::string text = plot::text_curve("loss", series, {.columns = 40});
  EXPECT_TRUE(text.starts_with("loss 0\n"));
  EXPECT_NE(text.find("step 0 to 100"), std::string::npos);
  std::vector<size_t> first_marks;
  for (size_t at = text.find('\n') + 1; at < text.size();) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    if (line.find('*') != std::string::npos) {
      first_marks.push_back(line.find('*'));
    }
    EXPECT_LE(line.size(), 40U);
    at += line.size() + 1;
  }
  EXPECT_GE(first_marks.size(), 6U);
  EXPECT_TRUE(std::is_sorted(first_marks.begin(), first_marks.end()));
  const std::string dots =
      plot::text_curve("loss", series, {.has_blocks = true, .columns = 40});
  EXPECT_NE(dots.find("\xe2\xa0"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
