// `lockstep-worker`: one rank. It links libtorch; `lockstep run` starts it once
// per process.
#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/app/demo.h"
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/lockstep.h"

namespace {

constexpr const char* kUsage =
    "usage: lockstep-worker COMMAND\n\n"
    "commands:\n"
    "  demo      train a small network with one process, then with two\n"
    "  version   print the version\n"
    "  help      print this text\n";

int dispatch(const std::vector<std::string>& arguments) {
  const std::string command = arguments.empty() ? "help" : arguments[0];
  if (command == "demo") return lockstep::run_demo();
  if (command == "version" || command == "--version") {
    std::printf("lockstep-worker %s\n", lockstep::version());
    return 0;
  }
  if (command == "help" || command == "--help" || command == "-h") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const std::vector<std::string> known = {"demo", "version", "help"};
  const auto near = lockstep::nearest(command, known);
  throw lockstep::ConfigError(
      "unknown command '" + command + "'; " +
      (near ? "did you mean 'lockstep-worker " + *near + "'?"
            : "lockstep-worker help lists them"));
}

}  // namespace

int main(int count, char** values) {
  int code = 0;
  const int failed = lockstep::run_program(
      [&] { code = dispatch({values + 1, values + count}); });
  return failed != 0 ? failed : code;
}
