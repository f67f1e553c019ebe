#include "lockstep/doctor/disk_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::doctor {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDiskMebibyte = int64_t{1} << 20;
constexpr int64_t kPieceBytes = 4 * kDiskMebibyte;
constexpr int64_t kMostBytes = 64 * kDiskMebibyte;
constexpr double kMostSeconds = 5;
constexpr int64_t kLeastFree = 64 * kDiskMebibyte;
constexpr int64_t kFewFree = 1024 * kDiskMebibyte;
constexpr double kSlowSave = 60;  // Seconds.

// The folder itself, or the nearest one above it that exists.
fs::path existing_folder(const fs::path& folder) {
  std::error_code error;
  fs::path place = fs::absolute(folder, error).lexically_normal();
  while (!place.has_filename() && place.has_relative_path()) {
    place = place.parent_path();
  }
  while (!fs::exists(place, error) && place.has_relative_path()) {
    place = place.parent_path();
  }
  return place;
}

// A file without a name; where the file system has none, its name is removed
// at once.
base::FileDescriptor open_nameless(const fs::path& folder) {
  base::FileDescriptor file(
      open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  std::string name = (folder / ".lockstep-doctor-XXXXXX").string();
  file = base::FileDescriptor(mkostemp(name.data(), O_CLOEXEC));
  const int reason = errno;
  if (file) unlink(name.c_str());
  errno = reason;
  return file;
}

int64_t free_bytes(int fd) {
  struct statvfs info{};
  if (fstatvfs(fd, &info) != 0) return 0;
  return static_cast<int64_t>(info.f_bavail) *
         static_cast<int64_t>(info.f_frsize);
}

// Bytes per second to the disk; 0: the disk is full.
double measure_speed(int fd, int64_t free) {
  const std::string piece(static_cast<size_t>(kPieceBytes), 'x');
  const int64_t most = std::min(kMostBytes, free / 4);
  const int64_t begin = base::monotonic_ns();
  int64_t written = 0;
  while (written < most) {
    if (!base::write_all(fd, piece) || fdatasync(fd) != 0) return 0;
    written += kPieceBytes;
    if (base::seconds_between(begin, base::monotonic_ns()) > kMostSeconds) {
      break;
    }
  }
  const double seconds = base::seconds_between(begin, base::monotonic_ns());
  return static_cast<double>(written) / std::max(seconds, 1e-9);
}

Finding judge_space(const DiskDemand& demand, int64_t free, double speed) {
  Finding finding{.check = "disk",
                  .text = base::bytes_text(free) + " free",
                  .kind = Class::kFiles};
  const std::string mend =
      fmt::format("df -h {}, then remove files or choose another --save_dir",
                  demand.folder.string());
  if (speed > 0) {
    finding.text += fmt::format(", {}/s written",
                                base::bytes_text(static_cast<int64_t>(speed)));
  }
  const int64_t size = demand.checkpoint_bytes;
  if (size > 0) {
    finding.text += fmt::format(
        "; a checkpoint of about {} takes {}", base::bytes_text(size),
        speed > 0 ? base::duration_text(static_cast<double>(size) / speed)
                  : "unknown time");
  }
  if (free < std::max(kLeastFree, size) || speed == 0) {
    finding.level = Level::kFailure;
    finding.text += ": the disk is full";
    finding.mend = mend;
  } else if (free < std::max(kFewFree, size * (demand.num_checkpoints + 1))) {
    finding.level = Level::kWarning;
    if (size > 0) {
      finding.text += fmt::format(", {} are kept", demand.num_checkpoints);
    }
    finding.mend = mend + (size > 0 ? ", or a smaller --keep_last" : "");
  } else if (size > 0 && static_cast<double>(size) / speed > kSlowSave) {
    finding.level = Level::kWarning;
    finding.mend = "a faster --save_dir, or a larger --save_every";
  }
  return finding;
}

}  // namespace

std::vector<Finding> check_disk(const DiskDemand& demand) {
  const fs::path place = existing_folder(demand.folder);
  Finding finding{.check = "save_dir",
                  .text = demand.folder.string() + " can be written",
                  .kind = Class::kFiles};
  std::error_code error;
  if (!fs::is_directory(place, error)) {
    finding.level = Level::kFailure;
    finding.text = fmt::format("{} is not a folder", place.string());
    finding.mend = "choose another --save_dir";
    return {finding};
  }
  const base::FileDescriptor file = open_nameless(place);
  if (!file) {
    const std::string reason = base::errno_text();
    finding.level = Level::kFailure;
    finding.text =
        fmt::format("{} cannot be written: {}", place.string(), reason);
    finding.mend =
        fmt::format("ls -ld {}, then chmod u+w it or choose another --save_dir",
                    place.string());
    return {finding};
  }
  const int64_t free = free_bytes(file.get());
  return {finding, judge_space(demand, free, measure_speed(file.get(), free))};
}

}  // namespace lockstep::doctor
