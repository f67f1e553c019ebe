#include "lockstep/settings.h"

#include <utility>

#include "lockstep/engine/common_settings.h"

namespace lockstep {

Settings::Settings() { engine::describe_common(options, common); }

void Settings::add_rule(std::function<void()> rule) {
  rules_.push_back(std::move(rule));
}

void Settings::resolve() const {
  for (const auto& rule : rules_) rule();
}

}  // namespace lockstep
