#include "lockstep/launch/log_folder.h"

#include "lockstep/base/crash_handler.h"
#include "lockstep/base/files.h"
#include "lockstep/base/run_note.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

fs::path temporary_folder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  return base::make_unique_folder(error ? fs::path("/tmp") : folder,
                                  "torchelastic_");
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    throw IoError("cannot create folder '" + path.string() +
                  "': " + error.message());
  }
}

}  // namespace

LogFolder::LogFolder(const std::string& log_dir, const std::string& run_id)
    : is_temporary_(log_dir.empty()) {
  base_ = is_temporary_ ? temporary_folder() : fs::absolute(log_dir);
  run_ = base::make_unique_folder(base_,
                                  base::replace_all(run_id, "/", "_") + "_");
}

fs::path LogFolder::make_attempt(int attempt, int num_processes) const {
  const fs::path folder = run_ / ("attempt_" + std::to_string(attempt));
  for (int rank = 0; rank < num_processes; ++rank) {
    make_folder(folder / std::to_string(rank));
  }
  return folder;
}

void LogFolder::clean(Errors errors) const {
  if (!is_temporary_) return;
  std::error_code error;
  // Not a range-for: its increment throws when a folder vanishes during the
  // loop.
  for (fs::recursive_directory_iterator entry(base_, error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) continue;
    const fs::path name = entry->path().filename();
    if (name == base::kRunNoteFile) continue;
    const bool is_error_file =
        name == "error.json" || name == base::kCrashFileName;
    if (!is_error_file || errors == Errors::kKeep) return;
  }
  fs::remove_all(base_, error);
}

}  // namespace lockstep::launch
