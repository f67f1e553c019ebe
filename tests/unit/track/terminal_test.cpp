#include "lockstep/track/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "lockstep/base/files.h"

namespace lockstep {
namespace {

TEST(Terminal, TellsItsWidthUnlessItIsDumb) {
  const FileDescriptor terminal(posix_openpt(O_RDWR | O_NOCTTY));
  ASSERT_TRUE(terminal);
  EXPECT_EQ(terminal_columns(terminal.get(), {{"TERM", "xterm"}}), 80);
  const winsize size{
      .ws_row = 40, .ws_col = 133, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
  EXPECT_EQ(terminal_columns(terminal.get(), {{"TERM", "xterm"}}), 133);
  EXPECT_EQ(terminal_columns(terminal.get(), {{"TERM", "dumb"}}), 0);
  EXPECT_EQ(terminal_columns(terminal.get(), {}), 0);
}

TEST(Terminal, AFileIsNone) {
  const FileDescriptor file(open("/dev/null", O_WRONLY));
  EXPECT_EQ(terminal_columns(file.get(), {{"TERM", "xterm"}}), 0);
}

TEST(Terminal, TheFirstLocaleVariableDecides) {
  EXPECT_TRUE(has_utf8_locale({{"LANG", "de_DE.UTF-8"}}));
  EXPECT_TRUE(has_utf8_locale({{"LC_ALL", "C.utf8"}}));
  EXPECT_FALSE(has_utf8_locale({{"LANG", "en_US.UTF-8"}, {"LC_ALL", "C"}}));
  EXPECT_TRUE(has_utf8_locale({{"LANG", "en_US.UTF-8"}, {"LC_ALL", ""}}));
  EXPECT_FALSE(has_utf8_locale({}));
}

}  // namespace
}  // namespace lockstep
