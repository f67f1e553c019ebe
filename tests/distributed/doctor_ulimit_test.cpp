// Sanitizers reserve more address space than this limit leaves; their builds
// leave this file out.
#include "distributed/doctor_program.h"

namespace lockstep::testing {
namespace {

TEST_F(DoctorProgram, LittleMemoryByUlimit) {
  expect_failure(run(doctor_after("ulimit -v 300000", {}), without_worker()),
                 "memory", 9, "a process may take 293.0 MiB (ulimit -v)");
}

}  // namespace
}  // namespace lockstep::testing
