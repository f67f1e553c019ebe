#include "lockstep/base/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "lockstep/base/files.h"
#include "lockstep/error.h"

namespace lockstep::base {

void write_new_file(const std::filesystem::path& path, std::string_view bytes) {
  FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  // Some file systems report a full disk only when the file is closed.
  const bool is_written =
      file && write_all(file.get(), bytes) && close(file.release()) == 0;
  if (is_written) return;
  throw IoError("cannot write '" + path.string() + "': " + errno_text());
}

}  // namespace lockstep::base
