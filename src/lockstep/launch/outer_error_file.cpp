#include "lockstep/launch/outer_error_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"

namespace lockstep::launch {
namespace {

using nlohmann::json;

constexpr const char* kErrorFileVariable = "TORCHELASTIC_ERROR_FILE";

// A device such as /dev/null must not be replaced by a file.
std::optional<std::string> find_file(const base::Environment& environment) {
  const auto path = base::find(environment, kErrorFileVariable);
  std::error_code error;
  if (!path || (std::filesystem::exists(*path, error) &&
                !std::filesystem::is_regular_file(*path, error))) {
    return std::nullopt;
  }
  return path;
}

json error_file_report(const Failure& root) {
  if (root.error) {
    const auto bytes = base::try_read_file(root.error_file);
    json file = json::parse(bytes.value_or(""), nullptr,
                            /*allow_exceptions=*/false);
    if (file.is_object() && file.contains("message")) return file;
  }
  const std::string text =
      root.error ? root.error->message
                 : fmt::format("rank {} (pid {}) ended with {}", root.rank,
                               root.pid, ending_text(root));
  const json info = {{"py_callstack", text},
                     {"timestamp", std::to_string(base::unix_seconds())}};
  return {{"message", {{"message", text}, {"extraInfo", info}}}};
}

}  // namespace

void pass_on_root_cause(const base::Environment& environment,
                        const Failure& root) noexcept {
  try {
    const auto path = find_file(environment);
    if (!path) return;
    json report = error_file_report(root);
    // Only the launcher knows the code of a worker that died by a signal.
    if (report["message"].is_object()) {
      report["message"]["errorCode"] = root.exit_code;
    }
    base::write_file_atomically(
        *path, report.dump(-1, ' ', false, json::error_handler_t::replace));
  } catch (...) {
  }
}

void pass_on_signal(const base::Environment& environment, int signal) noexcept {
  try {
    const auto path = find_file(environment);
    if (!path) return;
    const std::string text = fmt::format(
        "SignalException: Process {} got signal: {}", getpid(), signal);
    base::write_error_file(*path, {.message = text,
                                   .callstack = text,
                                   .unix_seconds = base::unix_seconds()});
  } catch (...) {
  }
}

}  // namespace lockstep::launch
