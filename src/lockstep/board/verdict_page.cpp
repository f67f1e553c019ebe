#include "lockstep/board/verdict_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lockstep/base/strings.h"

namespace lockstep::board {
namespace {

std::string escaped(std::string_view text) {
  std::string made(text);
  made = base::replace_all(made, "&", "&amp;");
  made = base::replace_all(made, "<", "&lt;");
  return base::replace_all(made, ">", "&gt;");
}

// "out of host memory (OOM killer)": "out-of-host-memory-oom-killer"
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char letter : heading) {
    if (letter == ' ') anchor += '-';
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
        letter == '-' || letter == '_') {
      anchor +=
          static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
  }
  return anchor;
}

constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<title>Verdicts</title>"
    "<link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\">"
    "<meta name=\"color-scheme\" content=\"light dark\">"
    "<style>body{max-width:60rem;margin:1rem auto;padding:0 1rem;"
    "font-family:sans-serif}div{white-space:pre-wrap;overflow-wrap:anywhere}"
    "h2:target{text-decoration:underline}</style></head><body>\n";

}  // namespace

std::string verdict_page(std::string_view markdown) {
  std::string page(kHead);
  for (const std::string& line : base::split(markdown, '\n')) {
    const size_t depth = std::min(line.find_first_not_of('#'), line.size());
    if (depth == 0 || depth > 3 || depth == line.size() || line[depth] != ' ') {
      page += fmt::format("<div>{}</div>\n", escaped(line));
      continue;
    }
    const std::string heading = line.substr(depth + 1);
    page += fmt::format("<h{} id=\"{}\">{}</h{}>\n", depth, anchor_of(heading),
                        escaped(heading), depth);
  }
  return page + "</body></html>\n";
}

}  // namespace lockstep::board
