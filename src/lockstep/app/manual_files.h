// Writes man pages and shell completions, laid out as in /usr/share.
#pragma once

#include <filesystem>

namespace lockstep::app {

// man/man1/lockstep*.1, bash-completion/completions/lockstep,
// zsh/site-functions/_lockstep, fish/vendor_completions.d/lockstep.fish. Throws
// IoError.
void write_manual(const std::filesystem::path& folder);

}  // namespace lockstep::app
