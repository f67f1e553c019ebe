#include "lockstep/base/environment.h"

#include <unistd.h>

#include <array>
#include <climits>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::base {
namespace {

constexpr double kDefaultTimeoutSeconds = 600;

}  // namespace

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

Environment process_environment() {
  Environment result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

std::optional<std::string> find(const Environment& environment,
                                std::string_view name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<int64_t> find_integer(const Environment& environment,
                                    std::string_view name) {
  const auto text = find(environment, name);
  if (!text) return std::nullopt;
  const auto value = parse_integer(*text);
  if (!value) {
    throw ConfigError("environment variable " + std::string(name) + "='" +
                      *text + "' is not an integer; set it to one or unset it");
  }
  return value;
}

double collective_timeout_seconds(const Environment& environment) {
  for (const char* name : {"TORCH_DISTRIBUTED_TIMEOUT", "NCCL_TIMEOUT"}) {
    const auto text = find(environment, name);
    if (!text) continue;
    const auto value = parse_number(*text);
    if (!value || !(*value > 0 && *value <= kLongestTimeoutSeconds)) {
      throw ConfigError(
          "environment variable " + std::string(name) + "='" + *text +
          "' must be a positive number of seconds, e.g. 1800, at most "
          "30 days");
    }
    return *value;
  }
  return kDefaultTimeoutSeconds;
}

}  // namespace lockstep::base
