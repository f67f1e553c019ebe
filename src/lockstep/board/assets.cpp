#include "lockstep/board/assets.h"

#include <array>

// NOLINTBEGIN(bugprone-macro-parentheses): names and texts of the assembler.
// Taken in by the assembler. The paths come from CMakeLists.txt.
#define LOCKSTEP_EMBED(name, file)                                     \
  asm(".pushsection .rodata\n" #name ":\n.incbin \"" file "\"\n" #name \
      "_end:\n.byte 0\n.popsection\n");                                \
  extern "C" __attribute__((visibility("hidden"))) const char name[];  \
  extern "C" __attribute__((visibility("hidden"))) const char name##_end[];

LOCKSTEP_EMBED(kBoardIndex, LOCKSTEP_PAGE "/index.html")
LOCKSTEP_EMBED(kBoardStyle, LOCKSTEP_PAGE "/board.css")
LOCKSTEP_EMBED(kBoardScript, LOCKSTEP_PAGE "/board.js")
LOCKSTEP_EMBED(kBoardCharts, LOCKSTEP_PAGE "/charts.js")
LOCKSTEP_EMBED(kBoardDetails, LOCKSTEP_PAGE "/details.js")
LOCKSTEP_EMBED(kBoardFormat, LOCKSTEP_PAGE "/format.js")
LOCKSTEP_EMBED(kBoardIcon, LOCKSTEP_PAGE "/icon.svg")
LOCKSTEP_EMBED(kBoardVerdicts, LOCKSTEP_VERDICTS)
LOCKSTEP_EMBED(kDygraphScript, LOCKSTEP_DYGRAPHS "/dygraph.min.js")
LOCKSTEP_EMBED(kDygraphStyle, LOCKSTEP_DYGRAPHS "/dygraph.min.css")
LOCKSTEP_EMBED(kDygraphLicense, LOCKSTEP_DYGRAPHS_LICENSE)

#undef LOCKSTEP_EMBED
// NOLINTEND(bugprone-macro-parentheses)

namespace lockstep::board {
namespace {

constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kScript = "text/javascript; charset=utf-8";
constexpr std::string_view kStyle = "text/css; charset=utf-8";
constexpr std::string_view kText = "text/plain; charset=utf-8";

struct Row {
  std::string_view path;
  std::string_view type;
  const char* begin;
  const char* end;
};

const std::array<Row, 11> kAssets = {{
    {"/", kHtml, kBoardIndex, kBoardIndex_end},
    {"/board.css", kStyle, kBoardStyle, kBoardStyle_end},
    {"/board.js", kScript, kBoardScript, kBoardScript_end},
    {"/charts.js", kScript, kBoardCharts, kBoardCharts_end},
    {"/details.js", kScript, kBoardDetails, kBoardDetails_end},
    {"/format.js", kScript, kBoardFormat, kBoardFormat_end},
    {"/icon.svg", "image/svg+xml", kBoardIcon, kBoardIcon_end},
    {"/verdicts.md", kText, kBoardVerdicts, kBoardVerdicts_end},
    {"/dygraph.js", kScript, kDygraphScript, kDygraphScript_end},
    {"/dygraph.css", kStyle, kDygraphStyle, kDygraphStyle_end},
    {"/dygraph-license.txt", kText, kDygraphLicense, kDygraphLicense_end},
}};

}  // namespace

std::optional<Asset> find_asset(std::string_view path) {
  for (const Row& row : kAssets) {
    if (row.path != path) continue;
    return Asset{
        .type = row.type,
        .bytes = {row.begin, static_cast<size_t>(row.end - row.begin)}};
  }
  return std::nullopt;
}

}  // namespace lockstep::board
