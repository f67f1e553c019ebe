#include "lockstep/doctor/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/base/printable.h"

namespace lockstep::doctor {
namespace {

const char* level_name(Level level) {
  switch (level) {
    case Level::kOk: return "ok";
    case Level::kWarning: return "warning";
    case Level::kFailure: return "FAILURE";
  }
  return "FAILURE";
}

const char* class_name(Class kind) {
  switch (kind) {
    case Class::kSettings: return "settings";
    case Class::kFiles: return "files";
    case Class::kExchange: return "exchange";
    case Class::kHang: return "hang";
    case Class::kDevice: return "device";
    case Class::kLimits: return "limits";
  }
  return "settings";
}

}  // namespace

int exit_code_of(Class kind) {
  switch (kind) {
    case Class::kSettings: return 2;
    case Class::kFiles: return 3;
    case Class::kExchange: return 5;
    case Class::kHang: return 6;
    case Class::kDevice: return 7;
    case Class::kLimits: return 9;
  }
  return 1;
}

std::string finding_line(const Finding& finding) {
  std::string line = fmt::format("{:<8} {:<16} {}", level_name(finding.level),
                                 finding.check, finding.text);
  if (!finding.mend.empty()) line += "; mend: " + finding.mend;
  return base::printable_line(line) + "\n";
}

int exit_code_of(std::span<const Finding> findings) {
  const auto failure =
      std::ranges::find(findings, Level::kFailure, &Finding::level);
  return failure == findings.end() ? 0 : exit_code_of(failure->kind);
}

std::string findings_json(std::span<const Finding> findings) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Finding& finding : findings) {
    const std::string level = level_name(finding.level);
    list.push_back({{"check", finding.check},
                    {"level", level == "FAILURE" ? "failure" : level},
                    {"class", class_name(finding.kind)},
                    {"text", finding.text},
                    {"mend", finding.mend}});
  }
  const Json all = {{"exit_code", exit_code_of(findings)}, {"checks", list}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string summary_text(std::span<const Finding> findings) {
  const auto count = [&](Level level) {
    return std::ranges::count(findings, level, &Finding::level);
  };
  return fmt::format("{} checks: {} ok, {} warnings, {} failures\n",
                     findings.size(), count(Level::kOk), count(Level::kWarning),
                     count(Level::kFailure));
}

}  // namespace lockstep::doctor
