#include "lockstep/launch/rendezvous_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

// Settings of torchrun's own back ends.
constexpr std::array<std::string_view, 5> kWithoutMeaning = {
    "close_timeout", "heartbeat", "read_timeout", "store_type", "is_host"};
constexpr double kLongestSeconds = 30 * 24 * 3600;
constexpr double kShortestSeconds = 0.05;

double setting_seconds(const std::string& name, const std::string& value) {
  const auto number = base::parse_number(value);
  if (!number || !(*number >= kShortestSeconds && *number <= kLongestSeconds)) {
    throw ConfigError(fmt::format(
        "--rdzv-conf {}={}: must be a number of seconds, at most 30 days", name,
        value));
  }
  return *number;
}

int setting_count(const std::string& name, const std::string& value) {
  const auto number = base::parse_integer(value);
  if (!number || *number < 1 || *number > 1000) {
    throw ConfigError(fmt::format(
        "--rdzv-conf {}={}: must be an integer from 1 to 1000", name, value));
  }
  return static_cast<int>(*number);
}

[[noreturn]] void unknown_setting(const std::string& name) {
  const std::vector<std::string> known = {
      "join_timeout", "timeout", "last_call_timeout", "keep_alive_interval",
      "keep_alive_max_attempt"};
  const auto near = base::nearest(name, known);
  throw ConfigError(fmt::format("--rdzv-conf: unknown setting '{}'; {}", name,
                                near ? fmt::format("did you mean {}?", *near)
                                     : "there are " + base::join(known, ", ")));
}

void apply_setting(RendezvousSettings& settings, const std::string& name,
                   const std::string& value) {
  if (name == "join_timeout" || name == "timeout") {
    settings.join_timeout = setting_seconds(name, value);
  } else if (name == "last_call_timeout") {
    settings.last_call_timeout = setting_seconds(name, value);
  } else if (name == "keep_alive_interval") {
    settings.keep_alive_interval = setting_seconds(name, value);
  } else if (name == "keep_alive_max_attempt") {
    settings.keep_alive_max_attempt = setting_count(name, value);
  } else if (std::ranges::find(kWithoutMeaning, name) ==
             kWithoutMeaning.end()) {
    unknown_setting(name);
  }
}

}  // namespace

RendezvousSettings parse_rendezvous_settings(const std::string& text) {
  RendezvousSettings settings;
  for (const std::string& part : base::split(text, ',')) {
    const std::string setting(base::trim(part));
    if (setting.empty()) continue;
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      throw ConfigError(fmt::format(
          "--rdzv-conf '{}': settings are NAME=VALUE, with commas between them",
          setting));
    }
    apply_setting(settings, std::string(base::trim(setting.substr(0, equals))),
                  std::string(base::trim(setting.substr(equals + 1))));
  }
  return settings;
}

}  // namespace lockstep::launch
