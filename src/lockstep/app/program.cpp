#include "lockstep/program.h"

#include <cstdio>

#include "lockstep/base/crash_handler.h"
#include "lockstep/base/error_file.h"
#include "lockstep/base/library_settings.h"
#include "lockstep/base/place_change.h"
#include "lockstep/base/printable.h"
#include "lockstep/base/strings.h"
#include "lockstep/comm/explain.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

void tell(const std::string& kind, const std::string& text) {
  const auto rank = base::find(
      base::current_environment(base::process_environment()), "RANK");
  const std::string prefix = rank ? "[rank" + *rank + "]: " : "";
  // On every line, as PyTorch does: the launcher sees where the text ends.
  const std::string lines = base::replace_all(
      kind + ": " + base::printable_text(text), "\n", "\n" + prefix);
  std::fprintf(stderr, "%s%s\n", prefix.c_str(), lines.c_str());
}

// Errors of libtorch may come from anywhere, such as backward(); other errors
// are not changed.
void explain_errors_of_libraries(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    if (!comm::is_of_libraries(error)) throw;
    comm::throw_explained(error, "the program failed");
  }
}

}  // namespace

int run_program(const std::function<void()>& body) {
  base::install_crash_handler(base::crash_file(base::process_environment()));
  for (const std::string& note : base::apply_library_settings())
    tell("note", note);
  try {
    explain_errors_of_libraries(body);
    return 0;
  } catch (const std::exception& error) {
    tell(kind_name(error), error.what());
    base::report_to_launcher(error);
    return exit_code(error);
  } catch (...) {
    const Error error("an exception that is not a std::exception");
    tell("Error", error.what());
    base::report_to_launcher(error);
    return exit_code(error);
  }
}

}  // namespace lockstep
