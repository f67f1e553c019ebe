#include "lockstep/app/manual_files.h"

#include "lockstep/app/description.h"
#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/manual/completion.h"
#include "lockstep/manual/man_page.h"

namespace lockstep::app {
namespace {

void write_file(const std::filesystem::path& path, const std::string& text) {
  base::make_output_folder(path.parent_path());
  base::write_file_atomically(path, text);
}

}  // namespace

void write_manual(const std::filesystem::path& folder) {
  const manual::Program program = describe_program();
  const auto pages = folder / "man" / "man1";
  write_file(pages / "lockstep.1", manual::man_page(program));
  for (const manual::Command& command : program.commands) {
    if (command.sections.empty()) continue;
    write_file(pages / ("lockstep-" + command.name + ".1"),
               manual::man_page(program, command));
  }
  write_file(folder / "bash-completion" / "completions" / "lockstep",
             manual::bash_completion(program));
  write_file(folder / "zsh" / "site-functions" / "_lockstep",
             manual::zsh_completion(program));
  write_file(folder / "fish" / "vendor_completions.d" / "lockstep.fish",
             manual::fish_completion(program));
}

}  // namespace lockstep::app
