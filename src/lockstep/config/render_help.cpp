#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/config/groups.h"
#include "lockstep/config/render.h"

namespace lockstep::config {
namespace {

constexpr size_t kIndent = 34;
constexpr size_t kWidth = 100;

std::string left_side(const Setting& setting) {
  if (setting.binding.kind == ScalarKind::kBool) {
    return "  --[no_]" + setting.name;
  }
  return fmt::format("  --{} {}", setting.name, value_name(setting));
}

std::string right_side(const Setting& setting) {
  const OptionDetails& details = setting.details;
  std::vector<std::string> notes = {"default: " + default_text(setting)};
  if (!details.choices.empty()) {
    notes.push_back("one of " + base::join(details.choices, ", "));
  }
  if (details.minimum) {
    notes.push_back(fmt::format("at least {}", *details.minimum));
  }
  if (details.maximum) {
    notes.push_back(fmt::format("at most {}", *details.maximum));
  }
  if (!details.aliases.empty()) {
    notes.push_back("also --" + base::join(details.aliases, ", --"));
  }
  return fmt::format("{} ({})", setting.help, base::join(notes, "; "));
}

// The right side starts in column kIndent, on the next line when the left side
// is too long.
std::string row(const std::string& left, const std::string& right) {
  std::string text = left;
  size_t column = left.size();
  if (column + 2 > kIndent) {
    text += "\n";
    column = 0;
  }
  text.append(kIndent - column, ' ');
  column = kIndent;
  for (const std::string& word : base::split(right, ' ')) {
    if (word.empty()) continue;
    if (column > kIndent && column + 1 + word.size() > kWidth) {
      text += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    }
    if (column > kIndent) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
  }
  return text + "\n";
}

}  // namespace

std::string help_text(const Options& options, std::string_view usage) {
  std::string text = fmt::format("usage: {}\n\nGeneral:\n", usage);
  text += row("  --config FILE",
              "YAML file with settings; several are applied in order, flags "
              "over all of them");
  text += row("  --print_config", "show all settings as YAML and stop");
  text += row("  -h, --help", "show this text and stop");
  for (const SettingGroup& group : groups_of(options)) {
    text += fmt::format("\n{}:\n", group.title);
    for (const Setting* setting : group.settings) {
      text += row(left_side(*setting), right_side(*setting));
    }
  }
  return text;
}

}  // namespace lockstep::config
