#include "lockstep/program.h"

#include <cstdio>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/error_file.h"
#include "lockstep/comm/explain.h"

namespace lockstep {
namespace {

void tell(const std::exception& error) {
  const char* rank = std::getenv("RANK");
  if (rank != nullptr) {
    std::fprintf(stderr, "[rank%s]: %s: %s\n", rank, kind_name(error).c_str(),
                 error.what());
  } else {
    std::fprintf(stderr, "%s: %s\n", kind_name(error).c_str(), error.what());
  }
  report_to_launcher(error);
}

}  // namespace

int run_program(const std::function<void()>& body) {
  try {
    try {
      body();
      return 0;
    } catch (const std::exception& error) {
      // Errors of libtorch come from anywhere, backward() above all.
      throw_explained(error, "the program failed");
    }
  } catch (const std::exception& error) {
    tell(error);
    return exit_code(error);
  }
}

}  // namespace lockstep
