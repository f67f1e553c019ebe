#include "lockstep/track/run_file.h"

#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"

namespace lockstep::track {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostLineBytes = 2000;

constexpr std::array<std::pair<plot::Direction, const char*>, 2> kDirections = {
    {{plot::Direction::kLower, "lower"}, {plot::Direction::kHigher, "higher"}}};

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

int64_t number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer()
             ? found->get<int64_t>()
             : 0;
}

std::optional<RunEnd> end_of(const Json& object) {
  const auto end = object.find("end");
  if (end == object.end() || !end->is_object()) return std::nullopt;
  return RunEnd{.unix_time = number_at(*end, "time"),
                .exit_code = static_cast<int>(number_at(*end, "exit_code")),
                .last_line = text_at(*end, "last_line")};
}

std::string own_host() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

}  // namespace

std::optional<RunInfo> parse_run_info(std::string_view text) {
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  RunInfo info{
      .recipe = text_at(object, "recipe"),
      .host = text_at(object, "host"),
      .pid = static_cast<int>(number_at(object, "pid")),
      .num_processes = static_cast<int>(number_at(object, "processes")),
      .total_steps = number_at(object, "total_steps"),
      .started = number_at(object, "started"),
      .log = text_at(object, "log"),
      .best = {.name = text_at(object, "best_metric")},
      .end = end_of(object)};
  for (const auto& [direction, name] : kDirections) {
    if (text_at(object, "better") == name) info.best.better = direction;
  }
  return info;
}

std::string run_info_text(const RunInfo& info) {
  Json object = {{"recipe", info.recipe},
                 {"host", info.host},
                 {"pid", info.pid},
                 {"processes", info.num_processes},
                 {"total_steps", info.total_steps},
                 {"started", info.started},
                 {"log", info.log}};
  if (!info.best.name.empty()) object["best_metric"] = info.best.name;
  for (const auto& [direction, name] : kDirections) {
    if (info.best.better == direction) object["better"] = name;
  }
  if (info.end) {
    object["end"] = {{"time", info.end->unix_time},
                     {"exit_code", info.end->exit_code},
                     {"last_line", info.end->last_line}};
  }
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunFile::RunFile(const std::filesystem::path& folder, RunInfo info)
    : path_(folder / kRunFile), info_(std::move(info)) {
  info_.host = own_host();
  info_.pid = getpid();
  if (info_.started == 0) info_.started = base::unix_seconds();
  info_.end.reset();
  base::write_file_atomically(path_, run_info_text(info_));
}

// An error may have several lines: the first says what happened.
void RunFile::console(const ConsoleText& text) {
  const std::string_view lines = base::trim(text.text);
  last_line_ = lines.substr(0, std::min(lines.find('\n'), kMostLineBytes));
}

void RunFile::finish(int exit_code) {
  info_.end = RunEnd{.unix_time = base::unix_seconds(),
                     .exit_code = exit_code,
                     .last_line = last_line_};
  base::write_file_atomically(path_, run_info_text(info_));
}

}  // namespace lockstep::track
