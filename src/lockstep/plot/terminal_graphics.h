// What a terminal can show, and images in the protocols of those that show
// them.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/environment.h"

namespace lockstep::plot {

enum class TerminalImages {
  kNone,   // Blocks of text instead.
  kKitty,  // Kitty's graphics protocol: kitty, Ghostty.
  kIterm,  // Inline images of iTerm2: also WezTerm and mintty.
};

enum class TerminalColors { kNone, k256, k24Bit };

struct TerminalAbility {
  TerminalImages images = TerminalImages::kNone;
  TerminalColors colors = TerminalColors::kNone;
  bool has_blocks = false;  // Characters beyond ASCII.
  int columns = 80;
};

// By TERM, TERM_PROGRAM, LC_TERMINAL, KITTY_WINDOW_ID, COLORTERM, NO_COLOR and
// the locale. Inside of tmux and screen, which pass no images on, there are
// none.
TerminalAbility terminal_ability(const base::Environment& environment,
                                 int columns);

// The bytes that show a PNG file below the cursor, scaled to at most this many
// columns; none for kNone.
std::string terminal_image(std::string_view png, TerminalImages protocol,
                           int columns);

}  // namespace lockstep::plot
