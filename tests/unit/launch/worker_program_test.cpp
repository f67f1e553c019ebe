#include "lockstep/launch/worker_program.h"

#include <gtest/gtest.h>

#include "lockstep/launch/program.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

constexpr const char* kScript = "#!/bin/sh\n";

// The message of the refusal, and its exit code behind it.
std::string worker_refusal(const base::Environment& environment,
                           const TempDir& launcher) {
  try {
    return "found " + launch::find_worker(environment, launcher.path());
  } catch (const launch::ProgramError& error) {
    return error.what() + (" " + std::to_string(error.program_exit_code()));
  }
}

TEST(WorkerProgram, TheVariableBeatsTheFolderBeatsPath) {
  const TempDir launcher;
  const TempDir elsewhere;
  const auto on_path = elsewhere.write_script("lockstep-worker", kScript);
  const auto named = elsewhere.write_script("other", kScript);
  const std::string path = elsewhere.path().string();
  EXPECT_EQ(launch::find_worker({{"PATH", path}}, launcher.path()), on_path);
  const auto beside = launcher.write_script("lockstep-worker", kScript);
  EXPECT_EQ(launch::find_worker({{"PATH", path}}, launcher.path()), beside);
  for (const std::string& value : {named, std::string("other")}) {
    EXPECT_EQ(launch::find_worker({{"PATH", path}, {"LOCKSTEP_WORKER", value}},
                                  launcher.path()),
              named);
  }
}

TEST(WorkerProgram, AMissingOneIsSaidWithTheRemedy) {
  const TempDir launcher;
  EXPECT_EQ(worker_refusal({{"PATH", "/no/such"}}, launcher),
            "lockstep-worker is missing: it is neither in " +
                launcher.path().string() +
                " nor on PATH; build it with ./lockstep.sh build, install "
                "Lockstep's wheel or name it in LOCKSTEP_WORKER 127");
  EXPECT_EQ(worker_refusal({{"LOCKSTEP_WORKER", "/no/worker"}}, launcher),
            "cannot start '/no/worker': No such file or directory; is the path "
            "right from here? (from LOCKSTEP_WORKER) 127");
}

TEST(WorkerProgram, OneThatIsNotExecutableIsNotPassedOver) {
  const TempDir launcher;
  const auto file = launcher.write("lockstep-worker", kScript);
  EXPECT_EQ(worker_refusal({{"PATH", "/usr/bin"}}, launcher),
            "cannot start '" + file +
                "': it is not executable; make it so with chmod +x 126");
}

}  // namespace
}  // namespace lockstep
