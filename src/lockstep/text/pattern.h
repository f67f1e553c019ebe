// A regular expression that cuts text into pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::text {

// Classes such as \p{L} and \s are those of Unicode. Safe to use from several
// threads at once.
class Pattern {
 public:
  // Throws FormatError for an expression that is not valid.
  explicit Pattern(const std::string& expression);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  // Matches and what lies between them, in order; none is empty. The text is
  // valid UTF-8; the pieces point into it. Throws FormatError when matching
  // takes too much work.
  std::vector<std::string_view> cut(std::string_view text) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace lockstep::text
