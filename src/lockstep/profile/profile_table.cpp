#include "lockstep/profile/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/base/printable.h"
#include "lockstep/error.h"

namespace lockstep::profile {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostUnknown = 5;

double ms_per_step(const RankProfile& profile, Kind kind) {
  if (profile.num_steps == 0) return 0;
  return static_cast<double>(profile.time.of(kind)) / 1e6 /
         static_cast<double>(profile.num_steps);
}

Json object_of(const RankProfile& profile) {
  Json kinds = Json::object();
  for (size_t i = 0; i < kNumKinds; ++i) {
    kinds[kind_name(static_cast<Kind>(i))] = profile.time.ns.at(i);
  }
  Json unknown = Json::object();
  std::vector<std::pair<int64_t, std::string>> longest;
  longest.reserve(profile.time.unknown.size());
  for (const auto& [name, ns] : profile.time.unknown) {
    longest.emplace_back(ns, name);
  }
  std::ranges::sort(longest, std::greater());
  longest.resize(std::min(longest.size(), kMostUnknown));
  for (const auto& [ns, name] : longest) unknown[name] = ns;
  return {{"rank", profile.rank},       {"steps", profile.num_steps},
          {"step_ms", profile.step_ms}, {"before_ms", profile.before_ms},
          {"ns", std::move(kinds)},     {"unknown", std::move(unknown)}};
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string unknown_text(std::span<const RankProfile> ranks) {
  std::string text;
  for (const RankProfile& rank : ranks) {
    for (const auto& [name, ns] : rank.time.unknown) {
      if (!text.empty()) text += ", ";
      text += base::printable_line(name, 60);
    }
    if (!text.empty()) break;
  }
  return text.empty() ? "" : "\n  other: " + text;
}

}  // namespace

std::string profile_json(const RankProfile& profile) {
  return dumped(object_of(profile));
}

RankProfile parse_profile(std::string_view json) {
  try {
    const Json object = Json::parse(json);
    RankProfile profile{.rank = object.at("rank"),
                        .num_steps = object.at("steps"),
                        .step_ms = object.at("step_ms"),
                        .before_ms = object.at("before_ms")};
    for (size_t i = 0; i < kNumKinds; ++i) {
      profile.time.ns.at(i) =
          object.at("ns").at(kind_name(static_cast<Kind>(i)));
    }
    for (const auto& [name, ns] : object.at("unknown").items()) {
      profile.time.unknown[name] = ns;
    }
    return profile;
  } catch (const nlohmann::json::exception& error) {
    throw FormatError(std::string("a rank's profile is damaged: ") +
                      error.what());
  }
}

std::string summary_json(std::span<const RankProfile> ranks,
                         const std::string& device) {
  Json list = Json::array();
  for (const RankProfile& rank : ranks) list.push_back(object_of(rank));
  return dumped({{"device", device}, {"ranks", std::move(list)}}) + "\n";
}

std::string profile_table(std::span<const RankProfile> ranks) {
  double all_ms = 0;
  for (const RankProfile& rank : ranks) all_ms += rank.step_ms;
  std::string text =
      fmt::format("profile of {} steps on {} rank{}\n", ranks[0].num_steps,
                  ranks.size(), ranks.size() == 1 ? "" : "s");
  text += fmt::format("  {:<14}{:>12}{:>8}{:>16}", "kind", "ms per step", "%",
                      ranks.size() > 1 ? "least to most" : "");
  for (size_t i = 0; i < kNumKinds; ++i) {
    const Kind kind = static_cast<Kind>(i);
    double sum = 0;
    double least = 1e300;
    double most = 0;
    for (const RankProfile& rank : ranks) {
      const double ms = ms_per_step(rank, kind);
      sum += ms;
      least = std::min(least, ms);
      most = std::max(most, ms);
    }
    text += fmt::format("\n  {:<14}{:>12.3f}{:>8.1f}", kind_name(kind),
                        sum / static_cast<double>(ranks.size()),
                        all_ms > 0 ? 100 * sum / all_ms : 0);
    if (ranks.size() > 1) {
      text += fmt::format("{:>16}", fmt::format("{:.3f}-{:.3f}", least, most));
    }
  }
  const RankProfile& first = ranks[0];
  text += fmt::format("\n  a step took {:.3f} ms while it was recorded",
                      first.step_ms);
  if (first.before_ms > 0) {
    const double cost = 100 * (first.step_ms / first.before_ms - 1);
    text +=
        fmt::format(" and {:.3f} ms before: recording costs ", first.before_ms);
    text += cost > 0 ? fmt::format("{:.1f} %", cost) : "less than steps vary";
  }
  return text + unknown_text(ranks);
}

}  // namespace lockstep::profile
