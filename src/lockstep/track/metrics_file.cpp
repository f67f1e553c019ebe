#include "lockstep/track/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

bool is_kept(const Json& record, const KeptRecords& kept) {
  if (!record.is_object() || !record.contains("step") ||
      !record["step"].is_number_integer()) {
    return false;  // A last line that was cut off.
  }
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
  for (const std::string& line : split(text, '\n')) {
    const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (is_kept(record, kept)) lines += line + "\n";
  }
  return lines;
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path, const KeptRecords& kept)
    : path_(std::move(path)) {
  const auto before = try_read_file(path_);
  write_file_atomically(path_,
                        before ? kept_lines(*before, kept) : std::string());
  file_ = FileDescriptor(
      open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_CREAT, 0644));
  if (!file_) {
    throw IoError(
        fmt::format("cannot open {}: {}", path_.string(), errno_text()));
  }
}

bool MetricsFile::append(
    int64_t step, const std::vector<std::pair<std::string, double>>& metrics) {
  Json record = {{"step", step}};
  for (const auto& [name, value] : metrics) record[name] = number(value);
  return write_all(file_.get(), record.dump() + "\n");
}

}  // namespace lockstep
