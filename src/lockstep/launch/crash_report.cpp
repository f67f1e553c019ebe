#include "lockstep/launch/crash_report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "lockstep/base/demangle.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/elf_symbols.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = 64 << 10;

// Whatever a worker put there: only a regular file is read, and not all of it.
std::string read_beginning(const fs::path& path) {
  const base::FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat info{};
  if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return "";
  }
  std::string bytes(kMaxBytes, '\0');
  const ssize_t count = read(file.get(), bytes.data(), bytes.size());
  bytes.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return bytes;
}

std::string without_control_characters(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return text;
}

// "signal 11 fault 0x10 thread my thread"
std::string cause_of(const std::string& header) {
  const auto at = header.find(" thread ");
  const std::string thread =
      at == std::string::npos ? "?" : header.substr(at + 8);
  const auto words = base::split(header, ' ');
  if (words.size() < 4) return "in thread " + thread;
  if (words[2] == "raised") {
    return fmt::format("raised by the process itself, in thread {}", thread);
  }
  return fmt::format("{} {}, in thread {}",
                     words[2] == "sent" ? "sent by process" : "at address",
                     words[3], thread);
}

}  // namespace

// "/lib/libx.so(_Z1fv+0x1c)[0x7f01]", "/bin/train(+0x1234)[0x55]"
std::string frame_text(const std::string& line) {
  const auto open = line.rfind('(');
  const auto close = line.find(')', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return line;
  const std::string file = line.substr(0, open);
  const std::string place = line.substr(open + 1, close - open - 1);
  const std::string module = fs::path(file).filename().string();
  const auto plus = place.rfind('+');
  if (plus == std::string::npos) return line;
  const std::string offset = place.substr(plus + 1);
  if (plus > 0) {
    return fmt::format("{}+{} ({})", base::demangled(place.substr(0, plus)),
                       offset, module);
  }
  const uint64_t address = std::strtoull(offset.c_str(), nullptr, 16);
  if (const auto symbol = find_symbol(file, address)) {
    return fmt::format("{}+{:#x} ({})", base::demangled(symbol->name),
                       symbol->offset, module);
  }
  return fmt::format("{} ({})", offset, module);
}

std::optional<CrashReport> read_crash_file(const fs::path& path) {
  const auto lines = base::split(read_beginning(path), '\n');
  if (!lines[0].starts_with("signal ")) return std::nullopt;
  CrashReport report{.cause = without_control_characters(cause_of(lines[0])),
                     .stack = {}};
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    report.stack.push_back(without_control_characters(frame_text(lines[i])));
  }
  return report;
}

}  // namespace lockstep::launch
