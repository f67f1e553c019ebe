#include "lockstep/track/secrets.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::track {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHidden = "***";

// Lower case, with one kind of separator between words.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    plain +=
        is_word ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                : '_';
  }
  return plain;
}

void hide_values(Json& json) {
  if (!json.is_structured()) return;
  for (const auto& [name, value] : json.items()) {
    if (json.is_object() && is_secret_name(name)) {
      value = kHidden;
    } else {
      hide_values(value);
    }
  }
}

}  // namespace

bool is_secret_name(std::string_view name) {
  const std::string plain = plain_name(name);
  for (const char* part :
       {"password", "passwd", "passphrase", "secret", "credential", "api_key",
        "apikey", "access_key", "private_key"}) {
    if (plain.find(part) != std::string::npos) return true;
  }
  const auto words = base::split(plain, '_');
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.ends_with("token");
  });
}

std::string json_without_secrets(std::string_view json) {
  Json value = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  LOCKSTEP_CHECK(!value.is_discarded(), "not JSON: " + std::string(json));
  hide_values(value);
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> arguments_without_secrets(
    std::span<const std::string> arguments) {
  std::vector<std::string> shown;
  bool is_value = false;
  for (const std::string& argument : arguments) {
    const auto equals = argument.find('=');
    const bool is_secret =
        is_secret_name(std::string_view(argument).substr(0, equals));
    if (is_value && !argument.starts_with("--")) {
      shown.emplace_back(kHidden);
      is_value = false;
      continue;
    }
    is_value =
        is_secret && equals == std::string::npos && argument.starts_with('-');
    shown.push_back(is_secret && equals != std::string::npos
                        ? argument.substr(0, equals + 1) + std::string(kHidden)
                        : argument);
  }
  return shown;
}

}  // namespace lockstep::track
