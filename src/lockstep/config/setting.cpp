#include "lockstep/config/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/strings.h"
#include "lockstep/base/utf8.h"
#include "lockstep/config/scalar_text.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

// Article and noun of one value, and the noun of many.
struct KindWords {
  const char* one;
  const char* many;
};

KindWords kind_words(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kBool: return {"true or false", "of true or false"};
    case ScalarKind::kInteger: return {"an integer", "integers"};
    case ScalarKind::kNumber: return {"a number", "numbers"};
    case ScalarKind::kText: return {"text", "texts"};
  }
  return {"", ""};
}

std::string range_text(const OptionDetails& details) {
  if (details.minimum && details.maximum) {
    return fmt::format(" from {} to {}", *details.minimum, *details.maximum);
  }
  if (details.minimum) return fmt::format(" of at least {}", *details.minimum);
  if (details.maximum) return fmt::format(" of at most {}", *details.maximum);
  return "";
}

// Written so that NaN is outside of every range.
bool in_range(const OptionDetails& details, double number) {
  return (!details.minimum || number >= *details.minimum) &&
         (!details.maximum || number <= *details.maximum);
}

bool is_choice(const OptionDetails& details, const std::string& text) {
  return details.choices.empty() ||
         std::find(details.choices.begin(), details.choices.end(), text) !=
             details.choices.end();
}

}  // namespace

const std::string& Setting::key() const {
  return details.key.empty() ? name : details.key;
}

std::string config::normalized(std::string_view name) {
  return base::replace_all(std::string(name), "-", "_");
}

std::string config::expectation(const Setting& setting) {
  const bool list = setting.binding.shape == ValueShape::kList;
  const OptionDetails& details = setting.details;
  std::string text;
  if (!details.choices.empty()) {
    text = list ? "a list of values among " : "one of ";
    text += base::join(details.choices, ", ");
  } else {
    const KindWords words = kind_words(setting.binding.kind);
    text = list ? fmt::format("a list of {}", words.many) : words.one;
    if (list && range_text(details) != "") text += ", each";
  }
  text += range_text(details);
  if (setting.binding.shape == ValueShape::kOptional) text += ", or none";
  return text;
}

bool config::is_allowed(const Setting& setting, const SettingScalar& item) {
  const OptionDetails& details = setting.details;
  if (const auto* integer = std::get_if<int64_t>(&item)) {
    return in_range(details, static_cast<double>(*integer)) &&
           is_choice(details, std::to_string(*integer));
  }
  if (const auto* number = std::get_if<double>(&item)) {
    // What has limits is a quantity, and infinity is none.
    const bool has_limits = details.minimum || details.maximum;
    return in_range(details, *number) &&
           (std::isfinite(*number) || !has_limits);
  }
  if (const auto* text = std::get_if<std::string>(&item)) {
    return base::is_utf8(*text) && is_choice(details, *text);
  }
  return true;
}

std::optional<SettingScalar> config::parse_item(const Setting& setting,
                                                std::string_view text) {
  auto item = config::parse_scalar(setting.binding.kind, text);
  if (item && !config::is_allowed(setting, *item)) item.reset();
  return item;
}

void config::refuse(const Setting& setting, std::string_view where,
                    std::string_view what) {
  throw ConfigError(fmt::format("{}: expected {}, got {}", where,
                                config::expectation(setting), what));
}

void config::refuse_text(const Setting& setting, std::string_view where,
                         std::string_view text) {
  std::string what = config::shown(text);
  if (!base::is_utf8(text)) what += ", which is not UTF-8";
  if (setting.binding.kind == ScalarKind::kText) {
    const auto near = base::nearest(text, setting.details.choices);
    if (near) what += fmt::format("; did you mean {}?", *near);
  }
  config::refuse(setting, where, what);
}

}  // namespace lockstep
