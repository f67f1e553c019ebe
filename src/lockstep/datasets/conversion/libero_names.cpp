#include "lockstep/datasets/conversion/libero_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

// Some files hold the sentence as a list of its parts, or in quotes.
std::string sentence_of(const nlohmann::json& value) {
  std::string text;
  if (value.is_string()) {
    text = value.get<std::string>();
  } else if (value.is_array()) {
    for (const auto& part : value) {
      if (part.is_string()) text += part.get<std::string>();
    }
  }
  std::string_view inner = base::trim(text);
  if (inner.size() >= 2 && inner.front() == '"' && inner.back() == '"') {
    inner = base::trim(inner.substr(1, inner.size() - 2));
  }
  return std::string(inner);
}

std::string sentence_of_name(std::string stem) {
  constexpr std::string_view kEnd = "_demo";
  if (stem.ends_with(kEnd)) stem.resize(stem.size() - kEnd.size());
  // "KITCHEN_SCENE3_" names the scene, not the task.
  const size_t scene = stem.find("SCENE");
  if (scene != std::string::npos) {
    const size_t task = stem.find('_', scene);
    if (task != std::string::npos) stem.erase(0, task + 1);
  }
  return std::string(base::trim(base::replace_all(stem, "_", " ")));
}

}  // namespace

std::string libero_sentence(const std::optional<std::string>& problem_info,
                            const std::string& file_stem) {
  if (problem_info) {
    const auto json = nlohmann::json::parse(*problem_info, nullptr,
                                            /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("language_instruction")) {
      std::string sentence = sentence_of(json["language_instruction"]);
      if (!sentence.empty()) return sentence;
    }
  }
  std::string sentence = sentence_of_name(file_stem);
  if (sentence.empty()) {
    throw FormatError(
        fmt::format("no sentence: there is no attribute problem_info with "
                    "language_instruction, and the file's name '{}' says "
                    "nothing",
                    file_stem));
  }
  return sentence;
}

std::string find_camera(std::span<const std::string> names,
                        const std::string& camera) {
  for (const char* ending : {"_rgb", "_image", ""}) {
    if (std::find(names.begin(), names.end(), camera + ending) != names.end()) {
      return camera + ending;
    }
  }
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (name.find(camera) == std::string::npos) continue;
    if (name.find("depth") == std::string::npos) found.push_back(name);
  }
  if (found.size() == 1) return found[0];
  throw FormatError(fmt::format(
      "{} images of camera '{}' among {}; name the cameras by --cameras "
      "WORKSPACE,WRIST, or --cameras WORKSPACE alone",
      found.empty() ? "no" : "several", camera,
      base::join(std::vector<std::string>(names.begin(), names.end()), ", ")));
}

}  // namespace lockstep::conversion
