// Ranks that other launchers start on one machine share memory, too.
// LOCKSTEP_EXCHANGE=shared makes everything else an error.
#include <gtest/gtest.h>

#include "support/messages.h"
#include "support/process.h"

namespace lockstep {
namespace {

using testing::expect_in;

using Words = std::vector<std::string>;

void expect_shared_under(Words launcher) {
  launcher.emplace_back(EXAMPLES_FOLDER "/01_all_reduce");
  const auto result = testing::run(
      launcher, {.environment = {{"LOCKSTEP_EXCHANGE", "shared"},
                                 {"CUDA_VISIBLE_DEVICES", ""},
                                 {"OMP_NUM_THREADS", "1"},
                                 // Open MPI refuses root and more processes
                                 // than cores unless told so.
                                 {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                 {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                 {"OMPI_MCA_rmaps_base_oversubscribe", "1"}}});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* rank : {"0", "1", "2"}) {
    expect_in(result.out, "rank " + std::string(rank) + " of 3: the sum is 6");
  }
}

TEST(SharedExchange, IsUsedUnderTorchrun) {
  expect_shared_under(
      {TORCHRUN, "--standalone", "--no-python", "--nproc_per_node=3"});
}

TEST(SharedExchange, IsUsedUnderMpirunOfOpenMpi) {
  expect_shared_under(
      {"/usr/bin/env", "mpirun.openmpi", "--bind-to", "none", "-n", "3"});
}

TEST(SharedExchange, IsUsedUnderMpiexecOfMpich) {
  expect_shared_under({"/usr/bin/env", "mpiexec.hydra", "-n", "3"});
}

}  // namespace
}  // namespace lockstep
