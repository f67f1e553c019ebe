#include "lockstep/base/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lockstep/base/files.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(Terminal, TellsItsWidthUnlessItIsDumb) {
  const base::FileDescriptor terminal(posix_openpt(O_RDWR | O_NOCTTY));
  ASSERT_TRUE(terminal);
  EXPECT_EQ(base::terminal_columns(terminal.get(), {{"TERM", "xterm"}}), 80);
  const winsize size{
      .ws_row = 40, .ws_col = 133, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
  EXPECT_EQ(base::terminal_columns(terminal.get(), {{"TERM", "xterm"}}), 133);
  EXPECT_EQ(base::terminal_columns(terminal.get(), {{"TERM", "dumb"}}), 0);
  EXPECT_EQ(base::terminal_columns(terminal.get(), {}), 0);
}

TEST(Terminal, AFileIsNone) {
  const base::FileDescriptor file(open("/dev/null", O_WRONLY));
  EXPECT_EQ(base::terminal_columns(file.get(), {{"TERM", "xterm"}}), 0);
}

TEST(Terminal, APipeIsWhatTheLauncherTells) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const base::FileDescriptor read_end(ends[0]);
  const base::FileDescriptor write_end(ends[1]);
  base::Environment environment = {{"TERM", "xterm"}};
  EXPECT_EQ(base::terminal_columns(write_end.get(), environment), 0);
  environment["LOCKSTEP_TERMINAL_COLUMNS"] = "97";
  EXPECT_EQ(base::terminal_columns(write_end.get(), environment), 97);
  const base::FileDescriptor file(open("/dev/null", O_WRONLY));
  EXPECT_EQ(base::terminal_columns(file.get(), environment), 0);
  environment["LOCKSTEP_TERMINAL_COLUMNS"] = "-5";
  EXPECT_EQ(base::terminal_columns(write_end.get(), environment), 0);
  environment["LOCKSTEP_TERMINAL_COLUMNS"] = "wide";
  EXPECT_THROW(base::terminal_columns(write_end.get(), environment),
               ConfigError);
  environment["TERM"] = "dumb";
  EXPECT_EQ(base::terminal_columns(write_end.get(), environment), 0);
}

TEST(Terminal, TheFirstLocaleVariableDecides) {
  EXPECT_TRUE(base::has_utf8_locale({{"LANG", "de_DE.UTF-8"}}));
  EXPECT_TRUE(base::has_utf8_locale({{"LC_ALL", "C.utf8"}}));
  EXPECT_FALSE(
      base::has_utf8_locale({{"LANG", "en_US.UTF-8"}, {"LC_ALL", "C"}}));
  EXPECT_TRUE(base::has_utf8_locale({{"LANG", "en_US.UTF-8"}, {"LC_ALL", ""}}));
  EXPECT_FALSE(base::has_utf8_locale({}));
}

}  // namespace
}  // namespace lockstep
