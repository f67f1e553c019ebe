#include "lockstep/models/jit/variant.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

#include "lockstep/error.h"

namespace lockstep::jit {
namespace {

constexpr std::string_view kPrefix = "JiT-";
constexpr std::array kSizes = {
    JitVariant{.size = 'B', .width = 768, .depth = 12, .num_heads = 12},
    JitVariant{.size = 'L', .width = 1024, .depth = 24, .num_heads = 16},
    JitVariant{.size = 'H', .width = 1280, .depth = 32, .num_heads = 16}};

}  // namespace

JitVariant parse_jit_variant(const std::string& name) {
  const std::string_view text = name;
  if (text.starts_with(kPrefix) && text.size() > kPrefix.size() + 2 &&
      text[kPrefix.size() + 1] == '/') {
    const std::string_view digits = text.substr(kPrefix.size() + 2);
    int64_t patch = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), patch);
    const bool is_number =
        error == std::errc() && end == digits.data() + digits.size();
    for (JitVariant variant : kSizes) {
      if (is_number && patch > 0 && text[kPrefix.size()] == variant.size) {
        variant.patch = patch;
        return variant;
      }
    }
  }
  throw ConfigError(fmt::format(
      "--model {}: no such size; usable are JiT-B/P, JiT-L/P and JiT-H/P, P "
      "the pixels of a patch's side, for example JiT-B/4",
      name));
}

}  // namespace lockstep::jit
