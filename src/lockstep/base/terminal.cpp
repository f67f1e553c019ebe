#include "lockstep/base/terminal.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

namespace lockstep::base {
namespace {

// The launcher forwards what it reads from pipes, not files.
bool is_pipe(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

int forwarded_columns(const Environment& environment) {
  constexpr int64_t kMostColumns = 10'000;
  const auto columns = find_integer(environment, kTerminalColumnsVariable);
  return static_cast<int>(
      std::clamp<int64_t>(columns.value_or(0), 0, kMostColumns));
}

}  // namespace

int terminal_columns(int fd, const Environment& environment) {
  constexpr int kUsualColumns = 80;
  if (find(environment, "TERM").value_or("dumb") == "dumb") return 0;
  if (isatty(fd) == 0) return is_pipe(fd) ? forwarded_columns(environment) : 0;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kUsualColumns;
  }
  return size.ws_col;
}

bool has_utf8_locale(const Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    auto locale = find(environment, name);
    if (!locale) continue;
    std::transform(
        locale->begin(), locale->end(), locale->begin(),
        [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return locale->find("UTF-8") != std::string::npos ||
           locale->find("UTF8") != std::string::npos;
  }
  return false;
}

}  // namespace lockstep::base
