#include "lockstep/launch/completion_script.h"

#include <array>
#include <string_view>

#include "lockstep/base/files.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

struct ShellFile {
  std::string_view shell;
  const char* path;  // Below ../share.
};

constexpr std::array kShellFiles = {
    ShellFile{"bash", "bash-completion/completions/lockstep"},
    ShellFile{"zsh", "zsh/site-functions/_lockstep"},
    ShellFile{"fish", "fish/vendor_completions.d/lockstep.fish"}};

}  // namespace

std::string completion_script(std::span<const std::string> arguments,
                              const std::filesystem::path& program_folder) {
  for (const ShellFile& file : kShellFiles) {
    if (arguments.size() != 1 || arguments[0] != file.shell) continue;
    return base::read_file(program_folder.parent_path() / "share" / file.path);
  }
  throw ConfigError(
      "usage: lockstep completion bash|zsh|fish; for bash: source "
      "<(lockstep completion bash)");
}

}  // namespace lockstep::launch
