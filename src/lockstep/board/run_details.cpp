#include "lockstep/board/run_details.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "lockstep/base/printable.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/utf8.h"
#include "lockstep/error.h"
#include "lockstep/runs/run_diff.h"
#include "lockstep/runs/run_files.h"
#include "lockstep/runs/run_json.h"

namespace lockstep::board {
namespace {

using runs::FolderEntry;
using runs::joined_path;
using Json = nlohmann::ordered_json;

constexpr size_t kMostEntries = 20'000;
constexpr size_t kMostSamples = 200;
constexpr size_t kMostSampleBytes = size_t{32} << 20;
constexpr size_t kMostProfileBytes = size_t{1} << 20;
constexpr size_t kMostKinds = 16;
constexpr size_t kLogBytes = size_t{64} << 10;

constexpr std::array<std::string_view, 3> kSampleFolders = {"samples", "images",
                                                            "texts"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 5>
    kSampleTypes = {{{".png", "image/png"},
                     {".gif", "image/gif"},
                     {".jpg", "image/jpeg"},
                     {".jpeg", "image/jpeg"},
                     {".txt", "text/plain; charset=utf-8"}}};
constexpr std::array<std::string_view, 3> kCheckpointEndings = {".pt", ".pth",
                                                                ".safetensors"};

std::string_view sample_type(std::string_view name) {
  for (const auto& [ending, type] : kSampleTypes) {
    if (name.ends_with(ending)) return type;
  }
  return "";
}

// The first number behind "step" in a name; -1: none.
int64_t step_in(std::string_view name) {
  size_t at = name.find("step");
  if (at == std::string_view::npos) return -1;
  at += 4;
  if (at < name.size() && (name[at] == '_' || name[at] == '-')) ++at;
  size_t end = at;
  while (end < name.size() &&
         std::isdigit(static_cast<unsigned char>(name[end])) != 0) {
    ++end;
  }
  return base::parse_integer(name.substr(at, end - at)).value_or(-1);
}

void sort_newest_first(std::vector<FolderEntry>& entries) {
  // Files of one second by their steps.
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) {
              return std::tuple(b.facts.modified, step_in(b.name), b.name) <
                     std::tuple(a.facts.modified, step_in(a.name), a.name);
            });
}

std::string file_json(const FolderEntry& entry) {
  return fmt::format(R"({{"path":{},"step":{},"time":{},"bytes":{}}})",
                     runs::json_text(entry.name), step_in(entry.name),
                     entry.facts.modified, entry.facts.size);
}

std::string list_json(std::vector<FolderEntry> entries, size_t most) {
  sort_newest_first(entries);
  if (entries.size() > most) entries.resize(most);
  std::vector<std::string> items;
  items.reserve(entries.size());
  for (const FolderEntry& entry : entries) items.push_back(file_json(entry));
  return runs::json_list(items);
}

std::string samples_json(const runs::FolderTree& tree, const std::string& run) {
  std::vector<FolderEntry> samples;
  for (const std::string_view folder : kSampleFolders) {
    for (FolderEntry& entry :
         tree.list(joined_path(run, folder), kMostEntries)) {
      if (entry.is_folder || sample_type(entry.name).empty()) continue;
      entry.name = joined_path(folder, entry.name);
      samples.push_back(std::move(entry));
    }
  }
  return list_json(std::move(samples), kMostSamples);
}

std::string checkpoints_json(const runs::FolderTree& tree,
                             const std::string& run) {
  std::vector<FolderEntry> files = tree.list(run, kMostEntries);
  std::erase_if(files, [](const FolderEntry& entry) {
    return entry.is_folder ||
           std::none_of(kCheckpointEndings.begin(), kCheckpointEndings.end(),
                        [&](std::string_view ending) {
                          return entry.name.ends_with(ending);
                        });
  });
  return list_json(std::move(files), kMostEntries);
}

double number_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

// What the page shows of a rank's profile, and nothing else of the file.
Json profile_of_rank(const Json& rank) {
  Json object = Json::object();
  for (const char* name : {"rank", "steps", "step_ms", "before_ms"}) {
    object[name] = number_of(rank, name);
  }
  object["ns"] = Json::object();
  const auto kinds = rank.find("ns");
  if (kinds == rank.end() || !kinds->is_object()) return object;
  for (const auto& [kind, ns] : kinds->items()) {
    if (object["ns"].size() < kMostKinds && ns.is_number()) {
      object["ns"][kind] = ns;
    }
  }
  return object;
}

// profile/summary.json of --profile; "null" without one.
std::string profile_json(const runs::FolderTree& tree, const std::string& run) {
  const auto text =
      tree.read(joined_path(run, "profile/summary.json"), kMostProfileBytes);
  const Json json = Json::parse(text.value_or(""), nullptr, false);
  if (!json.is_object()) return "null";
  Json object = {{"device", ""}, {"ranks", Json::array()}};
  if (const auto device = json.find("device");
      device != json.end() && device->is_string()) {
    object["device"] = *device;
  }
  const auto ranks = json.find("ranks");
  if (ranks == json.end() || !ranks->is_array()) return "null";
  for (const Json& rank : *ranks) {
    if (rank.is_object()) object["ranks"].push_back(profile_of_rank(rank));
  }
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

struct Settings {
  std::string list = "[]";
  std::string problem = {};
};

Settings settings_json(const runs::FolderTree& tree, const std::string& run) {
  const auto text =
      tree.read(joined_path(run, runs::kConfigFile), runs::kMostConfigBytes);
  if (!text) return {.problem = "the run has no config.yaml"};
  try {
    std::vector<std::string> items;
    for (const auto& [name, value] :
         runs::named_settings(*text, runs::kConfigFile)) {
      items.push_back(fmt::format("[{},{}]", runs::json_text(name),
                                  runs::json_text(value)));
    }
    return {.list = runs::json_list(items)};
  } catch (const ConfigError& error) {
    return {.problem = error.what()};
  }
}

}  // namespace

std::string details_json(const runs::FolderTree& tree,
                         const runs::RunSummary& run) {
  const Settings settings = settings_json(tree, run.id);
  return fmt::format(
      R"({{"samples":{},"checkpoints":{},"profile":{},"settings":{},"settings_problem":{}}})",
      samples_json(tree, run.id), checkpoints_json(tree, run.id),
      profile_json(tree, run.id), settings.list,
      runs::json_text(settings.problem));
}

std::optional<runs::OpenFile> open_trace(const runs::FolderTree& tree,
                                         const runs::RunSummary& run) {
  return tree.open_file(joined_path(run.id, "profile/trace.json"));
}

std::string log_end(const runs::FolderTree& tree, const runs::RunSummary& run) {
  std::string text =
      tree.read_end(joined_path(run.id, run.info.log), kLogBytes).value_or("");
  // The first line is only the end of one.
  if (text.size() == kLogBytes) text.erase(0, text.find('\n') + 1);
  return base::printable_text(text);
}

std::optional<SampleFile> read_sample(const runs::FolderTree& tree,
                                      const runs::RunSummary& run,
                                      std::string_view path) {
  const size_t slash = path.find('/');
  const bool is_listed =
      std::find(kSampleFolders.begin(), kSampleFolders.end(),
                path.substr(0, slash)) != kSampleFolders.end();
  const std::string_view type = sample_type(path);
  if (slash == std::string_view::npos || !is_listed || type.empty()) {
    return std::nullopt;
  }
  auto bytes = tree.read(joined_path(run.id, path), kMostSampleBytes);
  if (!bytes) return std::nullopt;
  return SampleFile{.type = std::string(type), .bytes = *std::move(bytes)};
}

}  // namespace lockstep::board
