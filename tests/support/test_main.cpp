// main() of the test programs. It applies what the launcher applies to workers,
// so that the same tests pass on every machine.
#include <gtest/gtest.h>

#include "lockstep/base/library_settings.h"

// LeakSanitizer asks for it by this name. fontconfig keeps tables of its own
// until the process ends.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT
  return "leak:libfontconfig";
}

int main(int count, char** values) {
  lockstep::base::apply_library_settings();
  testing::InitGoogleTest(&count, values);
  return RUN_ALL_TESTS();
}
