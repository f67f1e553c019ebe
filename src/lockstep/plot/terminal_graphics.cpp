#include "lockstep/plot/terminal_graphics.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/terminal.h"
#include "lockstep/formats/base64.h"
#include "lockstep/formats/png.h"

namespace lockstep::plot {
namespace {

using base::Environment;

constexpr int kPixelsPerColumn = 9;  // About; terminals scale by columns.

std::string value_of(const Environment& environment, const char* name) {
  return base::find(environment, name).value_or("");
}

TerminalImages images_of(const Environment& environment) {
  const std::string term = value_of(environment, "TERM");
  const std::string program = value_of(environment, "TERM_PROGRAM");
  if (!value_of(environment, "TMUX").empty() || term.starts_with("screen") ||
      term.starts_with("tmux")) {
    return TerminalImages::kNone;
  }
  if (!value_of(environment, "KITTY_WINDOW_ID").empty() ||
      term == "xterm-kitty" || term == "xterm-ghostty" ||
      program == "ghostty") {
    return TerminalImages::kKitty;
  }
  if (program == "iTerm.app" || program == "WezTerm" || program == "mintty" ||
      value_of(environment, "LC_TERMINAL") == "iTerm2") {
    return TerminalImages::kIterm;
  }
  return TerminalImages::kNone;
}

TerminalColors colors_of(const Environment& environment) {
  const std::string color = value_of(environment, "COLORTERM");
  const std::string term = value_of(environment, "TERM");
  if (!value_of(environment, "NO_COLOR").empty() || term == "dumb") {
    return TerminalColors::kNone;
  }
  if (color == "truecolor" || color == "24bit") return TerminalColors::k24Bit;
  return term.find("256color") != std::string::npos ? TerminalColors::k256
                                                    : TerminalColors::kNone;
}

// In pieces of 4096 letters; all but the last say that more follows.
std::string kitty_image(std::string_view png, int columns) {
  constexpr size_t kPiece = 4096;
  const std::string text = formats::to_base64(png);
  std::string result;
  for (size_t at = 0; at < text.size(); at += kPiece) {
    const bool is_last = at + kPiece >= text.size();
    // f=100: PNG; a=T: show it; q=2: no answers, which nobody would read.
    result += at == 0 ? fmt::format("\x1b_Gf=100,a=T,q=2,c={},m={};", columns,
                                    is_last ? 0 : 1)
                      : fmt::format("\x1b_Gm={};", is_last ? 0 : 1);
    result += text.substr(at, kPiece);
    result += "\x1b\\";
  }
  return result + "\n";
}

std::string iterm_image(std::string_view png, int columns) {
  return fmt::format(
      "\x1b]1337;File=inline=1;size={};width={};preserveAspectRatio=1:{}\x07\n",
      png.size(), columns, formats::to_base64(png));
}

}  // namespace

TerminalAbility terminal_ability(const Environment& environment, int columns) {
  return {.images = images_of(environment),
          .colors = colors_of(environment),
          .has_blocks = base::has_utf8_locale(environment),
          .columns = columns};
}

std::string terminal_image(std::string_view png, TerminalImages protocol,
                           int columns) {
  const int native = formats::read_png_header(png).width / kPixelsPerColumn;
  const int shown = std::clamp(native, 1, std::max(columns, 1));
  switch (protocol) {
    case TerminalImages::kNone: return "";
    case TerminalImages::kKitty: return kitty_image(png, shown);
    case TerminalImages::kIterm: return iterm_image(png, shown);
  }
  return "";
}

}  // namespace lockstep::plot
