#include "lockstep/formats/value.h"

#include <array>

#include "lockstep/error.h"

namespace lockstep {

static_assert(sizeof(formats::Value) <= 40);

std::string_view kind_text(size_t alternative) {
  constexpr std::array<std::string_view,
                       std::variant_size_v<formats::Value::Data>>
      kTexts = {"None",     "a bool",   "an integer", "a big integer",
                "a number", "a string", "bytes",      "a tensor",
                "a list",   "a tuple",  "a dict",     "an object"};
  return kTexts.at(alternative);
}

void throw_missing(const std::string& path) {
  throw FormatError("checkpoint: '" + path + "' is missing");
}

void throw_wrong_kind(const std::string& path, const std::string& kind,
                      const char* expected) {
  throw FormatError(
      "checkpoint: " + (path.empty() ? "the whole" : "'" + path + "'") +
      " is " + kind + ", expected " + expected);
}

}  // namespace lockstep
