#include "lockstep/track/metrics_file.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/track/metric_line.h"

namespace lockstep::track {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

bool is_record(const Json& record) {
  return record.is_object() && record.contains("step") &&
         record["step"].is_number_integer();
}

Json parsed(const std::string& line) {
  return Json::parse(line, nullptr, /*allow_exceptions=*/false);
}

bool is_kept(const Json& record, const KeptRecords& kept) {
  if (!is_record(record)) return false;  // A last line that was cut off.
  const auto step = record["step"].get<int64_t>();
  if (step != kept.last_step || kept.redone.empty()) {
    return step <= kept.last_step;
  }
  for (const auto& [name, value] : record.items()) {
    if (name.starts_with(kept.redone)) return false;
  }
  return true;
}

std::string kept_lines(const std::string& text, const KeptRecords& kept) {
  std::string lines;
  for (const std::string& line : base::split(text, '\n')) {
    if (is_kept(parsed(line), kept)) lines += line + "\n";
  }
  return lines;
}

std::filesystem::path without_dropped(const std::filesystem::path& path,
                                      const KeptRecords& kept) {
  const auto before = base::try_read_file(path);
  base::write_file_atomically(
      path, before ? kept_lines(*before, kept) : std::string());
  return path;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path,
                         const KeptRecords& kept)
    : file_(without_dropped(path, kept), RecordFile::Open::kAtEnd) {}

void MetricsFile::record(const Record& record) {
  if (record.metrics.empty()) return;
  Json line = {{"step", record.step}};
  for (const auto& [name, value] : record.metrics) line[name] = number(value);
  file_.append(line.dump(-1, ' ', false, Json::error_handler_t::replace) +
               "\n");
}

void read_metrics(const std::filesystem::path& path,
                  const std::function<void(Record)>& each) {
  std::ifstream file(path);
  if (!file && std::filesystem::exists(path)) {
    throw IoError("cannot read " + path.string());
  }
  std::string line;
  MetricLineParser parser;
  while (std::getline(file, line)) {
    if (!parser.parse(line)) continue;
    Record record{.step = parser.step()};
    for (const MetricValue& one : parser.values()) {
      record.metrics.emplace_back(one.name, one.value);
    }
    each(std::move(record));
  }
}

}  // namespace lockstep::track
