// Gives settings their values, from a command line and from YAML files.
//
// Flags follow Python's argparse: --name value, --name=value, '-' equal to '_',
// unique beginnings of names, the last one wins. A list takes all words up to
// the next flag (--cfg 1.0 2.5), commas in between too, and "--cfg=" empties
// it. A bool takes a value only when the next word is one (true, false, yes,
// no, on, off, 1, 0); --no_name is false. none or null clears an optional. "--"
// ends the flags. How YAML keys are matched: yaml_reader.h.
//
// All functions throw ConfigError and then leave every variable as it was.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/options.h"

namespace lockstep::config {

struct ParsedCommand {
  bool help = false;  // Nothing was applied, and errors were not looked for.
  bool help_all = false;  // Then help is true, too.
  bool print_config = false;
  std::vector<std::string> positionals = {};  // Words that belong to no flag.
  // Files of --config that were found in the shipped folder.
  std::vector<std::filesystem::path> shipped_files = {};
};

struct ParseConfig {
  // Folder of files that are installed with the programs.
  std::filesystem::path shipped = {};
  // Flags that the launcher takes out of the line, "nproc": suggested for an
  // unknown flag.
  std::vector<std::string> launch_flags = {};
};

// Files of --config FILE (several allowed, in order) are applied first, then
// flags over them. A relative FILE that does not exist is looked for in the
// folder of shipped files.
ParsedCommand parse_command(Options& options,
                            const std::vector<std::string>& arguments,
                            const ParseConfig& config = {});

// Over what was given before. The file is at most 10 MB of UTF-8.
void apply_yaml_file(Options& options, const std::filesystem::path& path);
void apply_yaml_text(Options& options, std::string_view text,
                     std::string_view file_name);

}  // namespace lockstep::config
