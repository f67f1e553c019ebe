#include "lockstep/track/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

namespace lockstep {

int terminal_columns(int fd, const Environment& environment) {
  constexpr int kUsualColumns = 80;
  if (find(environment, "TERM").value_or("dumb") == "dumb") return 0;
  if (isatty(fd) == 0) return 0;
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

}  // namespace lockstep
