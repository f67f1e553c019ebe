#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/config/groups.h"
#include "lockstep/config/render.h"
#include "lockstep/config/setting.h"

namespace lockstep::config {
namespace {

// A bar would end the cell, a line break the table.
std::string cell(std::string text) {
  text = base::replace_all(std::move(text), "\n", " ");
  return base::replace_all(std::move(text), "|", "\\|");
}

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string flags_cell(const Setting& setting) {
  const bool truth = setting.binding.kind == ScalarKind::kBool;
  std::string text = code((truth ? "--[no_]" : "--") + setting.name);
  for (const std::string& alias : setting.details.aliases) {
    text += ", " + code("--" + alias);
  }
  return text;
}

std::string default_cell(const Setting& setting) {
  const std::string text = default_text(setting);
  return setting.details.shown_default.empty() ? code(text) : text;
}

}  // namespace

std::string to_markdown(const Options& options) {
  std::string text;
  for (const SettingGroup& group : groups_of(options)) {
    if (!text.empty()) text += "\n";
    text += fmt::format("### {}\n\n", group.title);
    text += "| flag | YAML key | value | default | meaning |\n";
    text += "|---|---|---|---|---|\n";
    for (const Setting* setting : group.settings) {
      text += fmt::format("| {} | {} | {} | {} | {} |\n", flags_cell(*setting),
                          code(setting->key()), cell(expectation(*setting)),
                          cell(default_cell(*setting)), cell(setting->help));
    }
  }
  return text;
}

}  // namespace lockstep::config
