#include "lockstep/base/run_note.h"

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"

namespace lockstep::base {

void note_run_folder(const Environment& environment,
                     const std::filesystem::path& folder) noexcept {
  try {
    const auto file = find(environment, "TORCHELASTIC_ERROR_FILE");
    if (!file || !find(environment, "LOCKSTEP_STATUS_FD")) return;
    write_file_atomically(
        std::filesystem::path(*file).parent_path() / kRunNoteFile,
        std::filesystem::absolute(folder).string());
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

std::optional<std::filesystem::path> noted_run_folder(
    const std::filesystem::path& folder) {
  const auto text = try_read_file(folder / kRunNoteFile);
  if (!text || text->empty() || !is_folder(*text)) return std::nullopt;
  return *text;
}

}  // namespace lockstep::base
