#include "lockstep/models/atlas/hub.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::atlas {
namespace {

namespace fs = std::filesystem;

bool is_hub_part(std::string_view part) {
  constexpr std::string_view kOthers = "-_.";
  if (part.empty() || part.find("..") != std::string_view::npos) return false;
  return part.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "-_.") == std::string_view::npos &&
         kOthers.find(part.front()) == std::string_view::npos;
}

// {"owner", "name"}, or no value if it cannot be a hub name.
std::vector<std::string> hub_parts(const std::string& name) {
  std::vector<std::string> parts = base::split(name, '/');
  if (parts.size() != 2 || !is_hub_part(parts[0]) || !is_hub_part(parts[1])) {
    return {};
  }
  return parts;
}

fs::path cache_folder(const base::Environment& environment) {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto folder = base::find(environment, name)) return *folder;
  }
  if (const auto home = base::find(environment, "HF_HOME")) {
    return fs::path(*home) / "hub";
  }
  if (const auto cache = base::find(environment, "XDG_CACHE_HOME")) {
    return fs::path(*cache) / "huggingface" / "hub";
  }
  const fs::path home = base::find(environment, "HOME").value_or("/");
  return home / ".cache" / "huggingface" / "hub";
}

// The commit that `main` names; else the only one there is.
std::optional<fs::path> find_snapshot(const fs::path& model) {
  std::error_code ignored;
  if (const auto commit = base::try_read_file(model / "refs" / "main")) {
    const fs::path named = model / "snapshots" / base::trim(*commit);
    if (!base::trim(*commit).empty() && fs::is_directory(named, ignored)) {
      return named;
    }
  }
  std::vector<fs::path> all;
  for (const auto& entry :
       fs::directory_iterator(model / "snapshots", ignored)) {
    if (entry.is_directory(ignored)) all.push_back(entry.path());
  }
  if (all.size() != 1) return {};
  return all.front();
}

}  // namespace

fs::path find_model(const std::string& name, std::string_view setting,
                    const base::Environment& environment) {
  std::error_code ignored;
  if (!name.empty() && fs::exists(name, ignored)) return name;
  const std::vector<std::string> parts = hub_parts(name);
  if (parts.empty()) {
    throw ConfigError(
        fmt::format("{}: there is no file or folder '{}', and it is not a "
                    "Hugging Face hub name (owner/name)",
                    setting, name));
  }
  const fs::path model = cache_folder(environment) /
                         fmt::format("models--{}--{}", parts[0], parts[1]);
  if (const auto found = find_snapshot(model)) return *found;
  throw ConfigError(fmt::format(
      "{}: there is no file or folder '{}', and the local Hugging Face cache "
      "has no '{}'. Download it by: hf download {}  (for a model behind a "
      "licence after: hf auth login), or name the folder that holds it",
      setting, name, model.string(), name));
}

}  // namespace lockstep::atlas
