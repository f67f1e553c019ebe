#include "lockstep/config/parse.h"

#include <iterator>
#include <utility>

#include "lockstep/config/flag_reader.h"
#include "lockstep/config/yaml_reader.h"

namespace lockstep::config {
namespace {

namespace fs = std::filesystem;

void append(std::vector<Assignment>& all, std::vector<Assignment> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()),
             std::make_move_iterator(more.end()));
}

// Empty: the file is where its name says, or nowhere.
fs::path find_shipped(const fs::path& file, const fs::path& shipped) {
  std::error_code ignored;
  if (shipped.empty() || file.is_absolute()) return {};
  if (fs::exists(file, ignored)) return {};
  const auto path = (shipped / file).lexically_normal();
  const auto inside = path.lexically_relative(shipped.lexically_normal());
  if (inside.empty() || *inside.begin() == "..") return {};
  return fs::is_regular_file(path, ignored) ? path : fs::path();
}

}  // namespace

ParsedCommand parse_command(Options& options,
                            const std::vector<std::string>& arguments,
                            const ParseConfig& config) {
  ReadFlags flags = read_flags(options, arguments, config.launch_flags);
  if (flags.help) return {.help = true, .help_all = flags.help_all};
  std::vector<Assignment> assignments;
  std::vector<fs::path> shipped_files;
  for (const std::string& file : flags.config_files) {
    const fs::path found = find_shipped(file, config.shipped);
    append(assignments,
           read_yaml_file(options, found.empty() ? fs::path(file) : found));
    if (!found.empty()) shipped_files.push_back(found);
  }
  append(assignments, std::move(flags.assignments));
  options.assign(assignments);
  return {.print_config = flags.print_config,
          .positionals = std::move(flags.positionals),
          .shipped_files = std::move(shipped_files)};
}

void apply_yaml_file(Options& options, const fs::path& path) {
  options.assign(read_yaml_file(options, path));
}

void apply_yaml_text(Options& options, std::string_view text,
                     std::string_view file_name) {
  options.assign(read_yaml_text(options, text, file_name));
}

}  // namespace lockstep::config
