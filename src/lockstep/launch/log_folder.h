// The folder of a run's log and error files, laid out as torchrun does:
// <log_dir>/<run_id>_<random>/attempt_<n>/<local_rank>/error.json
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::launch {

class LogFolder {
 public:
  // An empty log_dir means a fresh folder "torchelastic_*" in TMPDIR. Throws
  // IoError.
  LogFolder(const std::string& log_dir, const std::string& run_id);

  // Makes the folders of one attempt and returns its path.
  std::filesystem::path make_attempt(int attempt, int num_processes) const;

  const std::filesystem::path& path() const { return run_; }

  // Removes a temporary folder. One that the user named stays, and so does one
  // that holds log files or, with kKeep, error files. Several processes may do
  // so at once.
  enum class Errors { kRemove, kKeep };
  void clean(Errors errors) const;

 private:
  std::filesystem::path base_;
  std::filesystem::path run_;
  bool is_temporary_;
};

}  // namespace lockstep::launch
