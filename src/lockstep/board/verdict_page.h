// docs/reference/verdicts.md as a page whose headings can be linked to.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::board {

// Headings become elements whose ids are the anchors that Markdown gives them;
// all other lines stay as they are.
std::string verdict_page(std::string_view markdown);

}  // namespace lockstep::board
