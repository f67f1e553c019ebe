// `lockstep-plot`: draws the curves and samples of runs. A separate program, so
// that the launcher links no image libraries; it does not link libtorch.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/base/printable.h"
#include "lockstep/base/terminal.h"
#include "lockstep/error.h"
#include "lockstep/plotting/plot_command.h"

namespace lockstep {
namespace {

// No value when stdout is not a terminal.
std::optional<plot::TerminalAbility> stdout_terminal() {
  const base::Environment environment = base::process_environment();
  if (isatty(STDOUT_FILENO) == 0) return std::nullopt;
  const int columns = base::terminal_columns(STDOUT_FILENO, environment);
  return plot::terminal_ability(environment, columns == 0 ? 80 : columns);
}

void plot_as_asked(const std::vector<std::string>& arguments) {
  const plotting::PlotOptions options = plotting::parse_plot_options(arguments);
  if (options.help) {
    base::write_all(STDOUT_FILENO, plotting::plot_help());
    return;
  }
  const plotting::PlotOutput output =
      plotting::plot_runs(options, stdout_terminal());
  base::write_all(STDOUT_FILENO, output.text);
  if (!output.warning.empty()) {
    std::fprintf(stderr, "lockstep plot: %s\n", output.warning.c_str());
  }
}

}  // namespace
}  // namespace lockstep

int main(int count, char** values) {
  try {
    lockstep::plot_as_asked({values + 1, values + count});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep plot: %s\n",
                 lockstep::base::printable_text(error.what()).c_str());
    return lockstep::exit_code(error);
  }
}
