// Settings as text: help, a complete YAML file, documentation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/groups.h"
#include "lockstep/options.h"

namespace lockstep::config {

// One flag of a help text: "--lr NUMBER" and its meaning.
struct HelpRow {
  std::string left = {};
  std::string right = {};
};

struct HelpSection {
  std::string title = {};
  std::vector<HelpRow> rows = {};
};

// kShort: meaning, default and choices. kFull: limits and aliases, too.
enum class HelpDetail { kShort, kFull };

HelpSection help_section(const SettingGroup& group, HelpDetail detail);

// A flag that every command has and that is not a setting.
struct GeneralFlag {
  std::string name = {};  // "config"
  char short_name = '\0';
  std::string value = {};  // "FILE"; empty: it takes none
  std::string help = {};
};

// Whether a command's help is one page, or --help shows the most used flags and
// --help_all all of them.
enum class HelpPages { kOne, kTwo };

// --config, --print_config, --help and, with two pages, --help_all.
std::vector<GeneralFlag> general_flags(HelpPages pages);
HelpSection general_section(HelpPages pages);

// "usage: <usage>", the text below it, which may be empty, and the sections,
// 100 columns wide.
std::string help_page(std::string_view usage, std::string_view about,
                      const std::vector<HelpSection>& sections);

// For --help of one page: every setting by group, with default, choices and
// aliases, then the general flags.
std::string help_text(const Options& options, std::string_view usage);

// For --print_config: every setting with its current value, less those of one
// start (once) and those that follow from others. Reading it back gives exactly
// the same values.
std::string to_yaml(const Options& options);

// Every setting with its current value, less those of one start, as one JSON
// object.
std::string to_json(const Options& options);

// For docs: a heading and a table per group.
std::string to_markdown(const Options& options);

}  // namespace lockstep::config
