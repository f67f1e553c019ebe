// The log file of a training: lines that are appended and never lost silently.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/files.h"

namespace lockstep::track {

// Every line is in the file when append() returns: a crash loses none.
class LogFile {
 public:
  // Keeps what the file holds already. Throws IoError.
  explicit LogFile(const std::filesystem::path& path);

  // Why the text is not in the file, or no value when it is. After a failure
  // the next call tries again: space on a disk comes back.
  std::optional<std::string> append(std::string_view text);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  base::FileDescriptor file_;
};

}  // namespace lockstep::track
