#include "lockstep/track/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "lockstep/error.h"

namespace lockstep::track {

LogFile::LogFile(const std::filesystem::path& path)
    : path_(path),
      file_(
          open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)) {
  if (file_) return;
  throw IoError("cannot open the log file " + path.string() + ": " +
                base::errno_text() + "; its folder must exist and be writable");
}

std::optional<std::string> LogFile::append(std::string_view text) {
  struct stat info{};
  // Writing to a file without a name succeeds and helps nobody.
  if (fstat(file_.get(), &info) == 0 && info.st_nlink == 0) {
    return "it was removed";
  }
  if (!base::write_all(file_.get(), text)) return base::errno_text();
  return std::nullopt;
}

}  // namespace lockstep::track
