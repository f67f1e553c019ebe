#include "lockstep/datasets/episodes/foreign_sets.h"

#include <fmt/format.h>

#include "lockstep/base/strings.h"

namespace lockstep::episodes {
namespace {

namespace fs = std::filesystem;

std::string quoted(const fs::path& path) {
  return "'" + base::replace_all(path.string(), "'", "'\\''") + "'";
}

// Whether HDF5 files lie in the folder or in one of its folders, where the
// suites of LIBERO are.
bool holds_hdf5(const fs::path& folder) {
  std::error_code problem;
  fs::recursive_directory_iterator entry(
      folder, fs::directory_options::skip_permission_denied, problem);
  for (; !problem && entry != fs::recursive_directory_iterator();
       entry.increment(problem)) {
    if (entry.depth() >= 1) entry.disable_recursion_pending();
    const std::string ending = entry->path().extension().string();
    if (ending == ".hdf5" || ending == ".h5") return true;
  }
  return false;
}

fs::path converted(const fs::path& folder) {
  fs::path name = folder.lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  return name.string() + "_episodes";
}

}  // namespace

std::string prepare_command_text(const PrepareCommand& command) {
  return fmt::format("lockstep prepare atlas --from {} --input {} --output {}",
                     command.from, quoted(command.input),
                     quoted(command.output));
}

std::optional<std::string> conversion_command(const fs::path& folder) {
  PrepareCommand command{.input = folder, .output = converted(folder)};
  std::error_code problem;
  if (fs::exists(folder / "meta" / "info.json", problem)) {
    command.from = "lerobot";
  } else if (holds_hdf5(folder)) {
    command.from = "libero";
  } else {
    return std::nullopt;
  }
  return prepare_command_text(command);
}

}  // namespace lockstep::episodes
