// main() of the test programs. It applies what the launcher applies to workers,
// so that the same tests pass on every machine.
#include <gtest/gtest.h>

#include "lockstep/base/library_settings.h"

int main(int count, char** values) {
  lockstep::base::apply_library_settings();
  testing::InitGoogleTest(&count, values);
  return RUN_ALL_TESTS();
}
