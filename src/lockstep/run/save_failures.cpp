#include "lockstep/run/save_failures.h"

#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::run {
namespace {

constexpr const char* kRule =
    "======================================================================";

}  // namespace

void SaveFailures::note_saved(int64_t step) {
  in_a_row_ = 0;
  saved_step_ = step;
}

std::string SaveFailures::note_failed(const FailedSave& save) {
  {
    const std::lock_guard lock(mutex_);
    last_error_ = save.error;
  }
  ++in_a_row_;
  const std::string left =
      !save.has_older ? "the run has no checkpoint on disk"
      : saved_step_   ? fmt::format("the newest checkpoint is that of step {}",
                                    *saved_step_)
                      : "the older checkpoints stay";
  const std::string text = fmt::format("{} was not written: {}; {}",
                                       save.path.string(), save.error, left);
  if (in_a_row_ < kTooMany) return text;
  return fmt::format(
      "{}\n{}\nTHE LAST {} SAVES HAVE FAILED: if the run ends now, {}.\n"
      "Make room on the disk of {}, or repair it, then send SIGUSR1 to save at "
      "once. With --save_required a run ends here.\n{}",
      text, kRule, in_a_row_.load(),
      !save.has_older ? "all progress is lost"
      : saved_step_
          ? fmt::format("all progress after step {} is lost", *saved_step_)
          : "all progress since it was resumed is lost",
      save.path.parent_path().string(), kRule);
}

std::string SaveFailures::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void SaveFailures::require_saves(const std::filesystem::path& folder) const {
  if (in_a_row_ < kTooMany) return;
  throw IoError(fmt::format(
      "--save_required: the last {} saves have failed, see the errors above: "
      "{}; make room on the disk of {}, or repair it, and resume",
      in_a_row_.load(), last_error(), folder.string()));
}

}  // namespace lockstep::run
