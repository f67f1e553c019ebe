#include "lockstep/track/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::track {

RecordFile::RecordFile(std::filesystem::path path, Open how)
    : path_(std::move(path)),
      file_(
          open(path_.c_str(),
               O_RDWR | O_CREAT | O_CLOEXEC | (how == Open::kNew ? O_EXCL : 0),
               0644)) {
  if (!file_) fail("cannot open {}: {}");
  end_ = lseek(file_.get(), 0, SEEK_END);
}

void RecordFile::replace_end(size_t count, std::string_view record) {
  const int64_t offset = end_ - static_cast<int64_t>(count);
  std::string before(count, '\0');
  if (pread(file_.get(), before.data(), count, offset) !=
      static_cast<ssize_t>(count)) {
    fail("cannot read {}: {}");
  }
  try {
    write_at(offset, record);
  } catch (const IoError&) {
    // Where it stood there is room for it.
    if (count > 0) write_at(offset, before);
    throw;
  }
  end_ = offset + static_cast<int64_t>(record.size());
}

void RecordFile::write_at(int64_t offset, std::string_view record) {
  struct stat info{};
  if (fstat(file_.get(), &info) != 0) fail("cannot look at {}: {}");
  // Writing to a file without a name succeeds and helps nobody.
  if (info.st_nlink == 0) {
    throw IoError(path_.string() + " was removed while the run writes to it");
  }
  const bool is_written = lseek(file_.get(), offset, SEEK_SET) == offset &&
                          base::write_all(file_.get(), record);
  const std::string reason = base::errno_text();
  const int64_t end =
      is_written ? offset + static_cast<int64_t>(record.size()) : end_;
  // Also takes away what an earlier call could not.
  const bool is_cut =
      (is_written && info.st_size <= end) || ftruncate(file_.get(), end) == 0;
  if (!is_written) {
    throw IoError(
        fmt::format("cannot write to {}: {}", path_.string(), reason));
  }
  if (!is_cut) fail("cannot shorten {}: {}");
}

void RecordFile::fail(std::string_view what) const {
  throw IoError(
      fmt::format(fmt::runtime(what), path_.string(), base::errno_text()));
}

}  // namespace lockstep::track
