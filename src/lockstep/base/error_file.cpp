#include "lockstep/base/error_file.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/regular_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::base {
namespace {

using nlohmann::json;

// Far above any traceback; the worker that wrote the file may be out of order.
constexpr size_t kMaxErrorFileBytes = 4 << 20;

// torchelastic writes the time as text, older versions as a number.
int64_t timestamp_of(const json& info) {
  const auto found = info.find("timestamp");
  if (found == info.end()) return 0;
  if (found->is_number()) return found->get<int64_t>();
  if (found->is_string()) {
    return parse_integer(found->get<std::string>()).value_or(0);
  }
  return 0;
}

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  return found->get<std::string>();
}

}  // namespace

void write_error_file(const std::filesystem::path& path,
                      const ErrorReport& report) noexcept {
  try {
    const json info = {{"py_callstack", report.callstack},
                       {"timestamp", std::to_string(report.unix_seconds)}};
    const json file = {
        {"message", {{"message", report.message}, {"extraInfo", info}}}};
    // Invalid UTF-8 in an error text must not hide the error.
    write_file_atomically(
        path, file.dump(-1, ' ', false, json::error_handler_t::replace));
  } catch (...) {
  }
}

std::optional<ErrorReport> read_error_file(const std::filesystem::path& path) {
  const auto bytes = try_read_regular_file(path, kMaxErrorFileBytes);
  if (!bytes || bytes->empty()) return std::nullopt;
  const json file = json::parse(*bytes, nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || !file.contains("message")) return std::nullopt;
  const json& message = file["message"];
  if (message.is_string())
    return ErrorReport{.message = message, .callstack = ""};
  if (!message.is_object()) return std::nullopt;
  ErrorReport report;
  report.message = text_at(message, "message");
  if (const auto info = message.find("extraInfo");
      info != message.end() && info->is_object()) {
    report.callstack = text_at(*info, "py_callstack");
    report.unix_seconds = timestamp_of(*info);
  }
  return report;
}

void report_to_launcher(const std::exception& error) noexcept {
  const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (path == nullptr || *path == '\0') return;
  try {
    const std::string text = kind_name(error) + ": " + error.what();
    // torchrun's report shows the stack and not the message.
    write_error_file(
        path,
        {.message = text, .callstack = text, .unix_seconds = unix_seconds()});
  } catch (...) {
  }
}

}  // namespace lockstep::base
