#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/config/render.h"

namespace lockstep::config {
namespace {

using Json = nlohmann::ordered_json;

Json scalar(const SettingScalar& value) {
  return std::visit([](const auto& item) { return Json(item); }, value);
}

Json value_of(const Binding& binding) {
  const SettingValue value = binding.read();
  if (binding.shape != ValueShape::kList) {
    return value.empty() ? Json() : scalar(value.front());
  }
  Json list = Json::array();
  for (const SettingScalar& item : value) list.push_back(scalar(item));
  return list;
}

}  // namespace

std::string to_json(const Options& options) {
  Json root = Json::object();
  for (const Setting& setting : options.settings()) {
    if (setting.details.once) continue;
    Json* place = &root;
    for (const std::string& part : base::split(setting.key(), '.')) {
      place = &(*place)[part];
    }
    *place = value_of(setting.binding);
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep::config
