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

// Empty: the file is where its name says, or nowhere.
std::filesystem::path find_shipped(const std::filesystem::path& file,
                                   const std::filesystem::path& shipped) {
  std::error_code ignored;
  if (shipped.empty() || file.is_absolute()) return {};
  if (std::filesystem::exists(file, ignored)) return {};
  const auto path = (shipped / file).lexically_normal();
  const auto inside = path.lexically_relative(shipped.lexically_normal());
  if (inside.empty() || *inside.begin() == "..") return {};
  return std::filesystem::is_regular_file(path, ignored)
             ? path
             : std::filesystem::path();
}

}  // namespace

ParsedCommand parse_command(Options& options,
                            const std::vector<std::string>& arguments,
                            const std::filesystem::path& shipped) {
  ReadFlags flags = read_flags(options, arguments);
  if (flags.help) return {.help = true};
  std::vector<Assignment> assignments;
  std::vector<std::filesystem::path> shipped_files;
  for (const std::string& file : flags.config_files) {
    const std::filesystem::path found = find_shipped(file, shipped);
    append(assignments, read_yaml_file(options, found.empty() ? file : found));
    if (!found.empty()) shipped_files.push_back(found);
  }
  append(assignments, std::move(flags.assignments));
  options.assign(assignments);
  return {.print_config = flags.print_config,
          .positionals = std::move(flags.positionals),
          .shipped_files = std::move(shipped_files)};
}

void apply_yaml_file(Options& options, const std::filesystem::path& path) {
  options.assign(read_yaml_file(options, path));
}

void apply_yaml_text(Options& options, std::string_view text,
                     std::string_view file_name) {
  options.assign(read_yaml_text(options, text, file_name));
}

}  // namespace lockstep::config
