#define PCRE2_CODE_UNIT_WIDTH 8
#include "lockstep/text/pattern.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <array>

#include "lockstep/base/utf8.h"
#include "lockstep/error.h"

namespace lockstep::text {
namespace {

std::string reason(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// PCRE2's \s has U+180E, which is not white space since Unicode 6.3.
std::string with_exact_space(std::string_view expression) {
  std::string result;
  for (size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] != '\\' || i + 1 == expression.size()) {
      result += expression[i];
      continue;
    }
    const char next = expression[++i];
    if (next == 's') {
      result += "\\p{White_Space}";
    } else if (next == 'S') {
      result += "\\P{White_Space}";
    } else {
      result += {'\\', next};
    }
  }
  return result;
}

using MatchData =
    std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

}  // namespace

struct Pattern::Code {
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> regex;
};

Pattern::Pattern(const std::string& expression) {
  const std::string exact = with_exact_space(expression);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* regex =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(exact.data()), exact.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error,
                    &offset, nullptr);
  if (regex == nullptr) {
    throw FormatError(
        fmt::format("the regular expression '{}' is not valid: {}",
                    base::as_utf8(expression), reason(error)));
  }
  code_ = std::make_unique<Code>(Code{{regex, &pcre2_code_free}});
  // Several times as fast; where it cannot be, matching works without.
  pcre2_jit_compile(regex, PCRE2_JIT_COMPLETE);
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

std::vector<std::string_view> Pattern::cut(std::string_view text) const {
  const MatchData match(
      pcre2_match_data_create_from_pattern(code_->regex.get(), nullptr),
      &pcre2_match_data_free);
  const auto find = [&](size_t from, uint32_t options) {
    return pcre2_match(
        code_->regex.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
        text.size(), from, options | PCRE2_NO_UTF_CHECK, match.get(), nullptr);
  };
  std::vector<std::string_view> pieces;
  size_t done = 0;  // Up to here the text is in pieces.
  const auto add_until = [&](size_t end) {
    if (end > done) pieces.push_back(text.substr(done, end - done));
    done = end;
  };
  for (size_t from = 0; from < text.size();) {
    int count = find(from, 0);
    // Its stack is small; the interpreter takes from the heap.
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = find(from, PCRE2_NO_JIT);
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0) {
      throw FormatError("the tokenizer's regular expression fails on a text: " +
                        reason(count));
    }
    const PCRE2_SIZE* place = pcre2_get_ovector_pointer(match.get());
    if (place[1] <= place[0] || place[1] <= from) {
      from += base::code_point_size(text.substr(from));
      continue;
    }
    add_until(place[0]);
    add_until(place[1]);
    from = place[1];
  }
  add_until(text.size());
  return pieces;
}

}  // namespace lockstep::text
