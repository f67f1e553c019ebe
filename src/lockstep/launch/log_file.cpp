#include "lockstep/launch/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::launch {

void LogLosses::add(const std::filesystem::path& file,
                    const std::string& reason) {
  if (reason_.empty()) {
    reason_ = reason;
    console_.write(
        fmt::format("lockstep: cannot write log file '{}': {}; its lines are "
                    "lost until this is fixed; the job goes on\n",
                    file.string(), reason));
    console_.flush();
  }
  ++lines_[file];
}

std::string LogLosses::summary() const {
  if (lines_.empty()) return "";
  int64_t total = 0;
  for (const auto& [file, lines] : lines_) total += lines;
  const auto& [first, its_lines] = *lines_.begin();
  return fmt::format(
      "{} line{} missing in {}: {}", total, total == 1 ? " is" : "s are",
      lines_.size() == 1
          ? "log file '" + first.string() + "'"
          : fmt::format("{} log files ({} in '{}')", lines_.size(), its_lines,
                        first.string()),
      reason_);
}

WorkerLogFile::WorkerLogFile(std::filesystem::path path, LogLosses* losses)
    : path_(std::move(path)), file_(open_log_file(path_)), losses_(losses) {}

void WorkerLogFile::write(std::string_view line) {
  std::string text = is_cut_ ? "\n" : "";
  if (missing_ > 0) {
    text += fmt::format("[lockstep: {} line{} missing here]\n", missing_,
                        missing_ == 1 ? " is" : "s are");
  }
  if (text.empty() ? append(line) : append(text.append(line))) {
    missing_ = 0;
    is_cut_ = false;
    return;
  }
  ++missing_;
  if (losses_ != nullptr) losses_->add(path_, base::errno_text());
}

bool WorkerLogFile::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file_.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    is_cut_ = text[static_cast<size_t>(count) - 1] != '\n';
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

base::FileDescriptor open_log_file(const std::filesystem::path& path) {
  base::FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file) {
    throw IoError("cannot open log file '" + path.string() +
                  "': " + base::errno_text());
  }
  return file;
}

}  // namespace lockstep::launch
