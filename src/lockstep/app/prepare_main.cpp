// `lockstep-prepare`: converts data sets to the format that a recipe reads. A
// separate program, so that no other links HDF5 or Arrow; it does not link
// libtorch.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/base/printable.h"
#include "lockstep/datasets/conversion/prepare.h"
#include "lockstep/error.h"
#include "lockstep/track/console.h"
#include "lockstep/track/standard_streams.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;

constexpr const char* kUsage =
    "usage: lockstep-prepare atlas --input PATH --output DIR [flags]\n\n"
    "lockstep-prepare atlas --help shows the flags; lockstep prepare atlas\n"
    "--input ... does the same.\n";

void print(std::string_view text) { base::write_all(STDOUT_FILENO, text); }

// Returns the exit code: that of FormatError if something was skipped.
int prepare(const Arguments& arguments) {
  track::Console console({},
                         track::standard_streams(base::process_environment()));
  const conversion::Prepared prepared =
      conversion::prepare_atlas(arguments, [&](int64_t done, int64_t total) {
        console.progress(
            {.label = "prepare", .step = done, .total_steps = total});
      });
  console.finish_progress();
  print(base::printable_text(prepared.text));
  return prepared.num_rejected == 0 ? 0 : exit_code(FormatError(""));
}

int dispatch(const Arguments& arguments) {
  const std::string command = arguments.empty() ? "help" : arguments[0];
  if (command == "help" || command == "--help" || command == "-h") {
    print(kUsage);
  } else if (command == "version" || command == "--version") {
    print("lockstep-prepare " LOCKSTEP_VERSION "\n");
  } else if (command == "atlas") {
    return prepare({arguments.begin() + 1, arguments.end()});
  } else {
    throw ConfigError("'" + command +
                      "' is not a recipe that lockstep-prepare knows; it knows "
                      "atlas");
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int count, char** values) {
  try {
    return lockstep::dispatch({values + 1, values + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep-prepare: %s\n",
                 lockstep::base::printable_text(error.what()).c_str());
    return lockstep::exit_code(error);
  }
}
