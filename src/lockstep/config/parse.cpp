#include "lockstep/config/parse.h"

#include <iterator>
#include <utility>

#include "lockstep/config/flag_reader.h"
#include "lockstep/config/yaml_reader.h"

namespace lockstep::config {
namespace {

void append(std::vector<Assignment>& all, std::vector<Assignment> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()),
             std::make_move_iterator(more.end()));
}

}  // namespace

ParsedCommand parse_command(Options& options,
                            const std::vector<std::string>& arguments) {
  ReadFlags flags = read_flags(options, arguments);
  if (flags.help) return {.help = true};
  std::vector<Assignment> assignments;
  for (const std::string& file : flags.config_files) {
    append(assignments, read_yaml_file(options, file));
  }
  append(assignments, std::move(flags.assignments));
  options.assign(assignments);
  return {.print_config = flags.print_config,
          .positionals = std::move(flags.positionals)};
}

void apply_yaml_file(Options& options, const std::filesystem::path& path) {
  options.assign(read_yaml_file(options, path));
}

void apply_yaml_text(Options& options, std::string_view text,
                     std::string_view file_name) {
  options.assign(read_yaml_text(options, text, file_name));
}

}  // namespace lockstep::config
