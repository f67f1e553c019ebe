#include "lockstep/plot/value_text.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "lockstep/base/strings.h"
#include "lockstep/base/utf8.h"

namespace lockstep::plot {

std::string grouped(double whole_number) {
  std::string text = fmt::format("{:.0f}", whole_number);
  const int first = text[0] == '-' ? 1 : 0;
  for (auto at = static_cast<int>(text.size()) - 3; at > first; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

std::string value_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e4 && size < 1e9) return grouped(value);
  // 1e-5 instead of 1e-05, as on the axes.
  std::string text = fmt::format("{:.4g}", value);
  text = base::replace_all(text, "e-0", "e-");
  return base::replace_all(text, "e+", "e");
}

std::string cut_to_width(const Font& font, const std::string& text, double size,
                         double width) {
  // What arithmetic adds at the end must not cut a text that just fits. Of very
  // long ones the width is not computed.
  constexpr size_t kMostBytes = 1000;
  std::string valid = base::as_utf8(text);
  if (valid.size() <= kMostBytes && font.width(valid, size) <= width + 0.01) {
    return valid;
  }
  std::string fitting;
  std::string_view rest = valid;
  while (!rest.empty()) {
    const size_t count = base::code_point_size(rest);
    const std::string longer = fitting + std::string(rest.substr(0, count));
    if (font.width(longer + "...", size) > width) break;
    fitting = longer;
    rest.remove_prefix(count);
  }
  return fitting + "...";
}

}  // namespace lockstep::plot
