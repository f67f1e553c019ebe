#include "lockstep/track/standard_streams.h"

#include <unistd.h>

#include "lockstep/base/files.h"
#include "lockstep/base/terminal.h"

namespace lockstep::track {

ConsoleOutput standard_streams(const base::Environment& environment) {
  return {
      .out =
          [](std::string_view text) { base::write_all(STDOUT_FILENO, text); },
      .err =
          [](std::string_view text) { base::write_all(STDERR_FILENO, text); },
      .columns =
          [environment] {
            return base::terminal_columns(STDOUT_FILENO, environment);
          },
      .is_utf8 = base::has_utf8_locale(environment)};
}

}  // namespace lockstep::track
