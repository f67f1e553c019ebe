#include "lockstep/formats/weight_index.h"

#include <nlohmann/json.hpp>

#include "lockstep/base/utf8.h"
#include "lockstep/error.h"

namespace lockstep::formats {
namespace {

bool is_plain_name(const std::string& file) {
  return !file.empty() && file != "." && file != ".." &&
         file.find('/') == std::string::npos &&
         file.find('\0') == std::string::npos;
}

}  // namespace

std::map<std::string, std::string> parse_weight_index(std::string_view json) {
  std::map<std::string, std::string> files;
  try {
    const auto index = nlohmann::json::parse(json);
    const auto& map = index.at("weight_map");
    if (!map.is_object())
      throw FormatError("\"weight_map\" is not a JSON object");
    for (const auto& [name, file] : map.items()) {
      files.emplace(name, file.get<std::string>());
    }
  } catch (const nlohmann::json::exception& error) {
    throw FormatError(base::as_utf8(error.what()));
  }
  for (const auto& [name, file] : files) {
    if (!is_plain_name(file)) {
      throw FormatError("tensor '" + name + "' lies in '" + file +
                        "', which is not a file of the same folder");
    }
  }
  return files;
}

}  // namespace lockstep::formats
