#include "lockstep/runs/run_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"

namespace lockstep::runs {
namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json rank_object(const RankRow& row) {
  const base::RankStatus& rank = row.page.rank;
  Json object = {
      {"rank", rank.rank},
      {"pid", rank.pid},
      {"health", health_name(row.health)},
      {"note", row.note},
      {"phase", base::phase_name(rank.phase)},
      {"step", rank.step},
      {"silent_seconds", rank.silent_seconds},
      {"collective", base::collective_name(rank.collective)},
      {"collective_number", rank.collectives_started},
      {"in_collective", rank.collectives_finished < rank.collectives_started},
      {"collective_seconds", rank.collective_seconds},
      {"collective_bytes", rank.collective_bytes},
      {"host_bytes", rank.host_bytes},
      {"device_bytes", rank.device_bytes}};
  if (row.page.training && row.page.training->times.num_steps > 0) {
    const base::StepSeconds& times = row.page.training->times;
    const double scale = 1e3 / static_cast<double>(times.num_steps);
    object["ms"] = {{"data", scale * times.data},
                    {"compute", scale * times.compute},
                    {"exchange", scale * times.exchange},
                    {"other", scale * times.other}};
  }
  return object;
}

}  // namespace

std::string json_text(std::string_view text) {
  return dumped(Json(std::string(text)));
}

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.7g}", value) : "null";
}

std::string json_list(std::span<const std::string> items) {
  return "[" + base::join(items, ",") + "]";
}

std::string summary_json(const RunSummary& run) {
  Json object = {
      {"id", run.id},
      {"recipe", run.info.recipe},
      {"state", state_name(run.state)},
      {"reason", run.reason},
      {"step", run.step ? Json(*run.step) : Json(nullptr)},
      {"total_steps",
       run.info.total_steps > 0 ? Json(run.info.total_steps) : Json(nullptr)},
      {"loss", number(run.loss)},
      {"best_metric", run.best ? Json(run.best_name) : Json(nullptr)},
      {"best",
       number(run.best ? std::optional(run.best->value) : std::nullopt)},
      {"best_step", run.best ? Json(run.best->step) : Json(nullptr)},
      {"samples_per_second", number(run.samples_per_second)},
      {"processes", run.info.num_processes},
      {"host", run.info.host},
      {"pid", run.info.pid},
      {"started", run.info.started},
      {"last_sign", run.last_sign}};
  if (run.info.end) object["exit_code"] = run.info.end->exit_code;
  if (!run.verdict.cause.empty()) {
    object["verdict"] = {{"cause", run.verdict.cause},
                         {"evidence", run.verdict.evidence},
                         {"meaning", run.verdict.meaning},
                         {"next", run.verdict.next},
                         {"see", run.verdict.see}};
  }
  return dumped(object);
}

std::string ranks_json(std::span<const RankRow> rows) {
  Json list = Json::array();
  for (const RankRow& row : rows) list.push_back(rank_object(row));
  return dumped(list);
}

}  // namespace lockstep::runs
