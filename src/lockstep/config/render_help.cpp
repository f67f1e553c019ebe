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
    return "--[no_]" + setting.name;
  }
  return fmt::format("--{} {}", setting.name, value_name(setting));
}

std::string with_notes(const std::string& help,
                       const std::vector<std::string>& notes) {
  if (notes.empty()) return help;
  return fmt::format("{} ({})", help, base::join(notes, "; "));
}

std::string right_side(const Setting& setting, HelpDetail detail) {
  const OptionDetails& details = setting.details;
  std::vector<std::string> notes = {"default: " + default_text(setting)};
  const bool is_unset =
      notes[0] == "default: none" || notes[0] == "default: \"\"";
  if (detail == HelpDetail::kShort && is_unset) notes.clear();
  if (!details.choices.empty()) {
    notes.push_back("one of " + base::join(details.choices, ", "));
  }
  if (detail == HelpDetail::kShort) return with_notes(setting.help, notes);
  if (details.minimum) {
    notes.push_back(fmt::format("at least {}", *details.minimum));
  }
  if (details.maximum) {
    notes.push_back(fmt::format("at most {}", *details.maximum));
  }
  if (!details.aliases.empty()) {
    notes.push_back("also --" + base::join(details.aliases, ", --"));
  }
  return with_notes(setting.help, notes);
}

// The right side starts in column kIndent, on the next line when the left side
// is too long.
std::string row(const HelpRow& help) {
  std::string text = "  " + help.left;
  size_t column = text.size();
  if (column + 2 > kIndent) {
    text += "\n";
    column = 0;
  }
  text.append(kIndent - column, ' ');
  column = kIndent;
  for (const std::string& word : base::split(help.right, ' ')) {
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

HelpSection help_section(const SettingGroup& group, HelpDetail detail) {
  HelpSection section{.title = group.title};
  for (const Setting* setting : group.settings) {
    section.rows.push_back({left_side(*setting), right_side(*setting, detail)});
  }
  return section;
}

std::vector<GeneralFlag> general_flags(HelpPages pages) {
  std::vector<GeneralFlag> flags = {
      {.name = "config",
       .value = "FILE",
       .help = "YAML file with settings; several are applied in order, flags "
               "over all of them"},
      {.name = "print_config", .help = "show all settings as YAML and stop"},
      {.name = "help",
       .short_name = 'h',
       .help = pages == HelpPages::kOne ? "show this text and stop"
                                        : "show the most used flags and stop"}};
  if (pages == HelpPages::kTwo) {
    flags.push_back({.name = "help_all", .help = "show all flags and stop"});
  }
  return flags;
}

HelpSection general_section(HelpPages pages) {
  HelpSection section{.title = "General"};
  for (const GeneralFlag& flag : general_flags(pages)) {
    std::string left = "--" + flag.name;
    if (flag.short_name != '\0') {
      left = fmt::format("-{}, {}", flag.short_name, left);
    }
    if (!flag.value.empty()) left += " " + flag.value;
    section.rows.push_back({left, flag.help});
  }
  return section;
}

std::string help_page(std::string_view usage, std::string_view about,
                      const std::vector<HelpSection>& sections) {
  std::string text = fmt::format("usage: {}\n", usage);
  if (!about.empty()) text += fmt::format("\n{}\n", about);
  for (const HelpSection& section : sections) {
    text += fmt::format("\n{}:\n", section.title);
    for (const HelpRow& help : section.rows) text += row(help);
  }
  return text;
}

std::string help_text(const Options& options, std::string_view usage) {
  std::vector<HelpSection> sections;
  for (const SettingGroup& group : groups_of(options)) {
    sections.push_back(help_section(group, HelpDetail::kFull));
  }
  sections.push_back(general_section(HelpPages::kOne));
  return help_page(usage, "", sections);
}

}  // namespace lockstep::config
