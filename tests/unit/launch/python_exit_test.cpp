#include "lockstep/launch/python_exit.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lockstep {
namespace {

const launch::ProgramCommand kPython = {
    .file = "", .arguments = {}, .title = "p.py", .is_python = true};

launch::Failure abort_at_exit() {
  launch::Failure failure;
  failure.exit_code = -SIGABRT;
  failure.last_lines = {"a warning",
                        "terminate called without an active exception"};
  return failure;
}

TEST(PythonExit, AnAbortOfGloosThreadNamesTheRemedy) {
  EXPECT_NE(launch::python_exit_advice(kPython, abort_at_exit())
                .find("torch.distributed.destroy_process_group()"),
            std::string::npos);
}

TEST(PythonExit, OtherFailuresGetNoAdvice) {
  launch::ProgramCommand other = kPython;
  other.is_python = false;
  EXPECT_EQ(launch::python_exit_advice(other, abort_at_exit()), "");
  launch::Failure failure = abort_at_exit();
  failure.exit_code = 1;
  EXPECT_EQ(launch::python_exit_advice(kPython, failure), "");
  failure = abort_at_exit();
  failure.last_lines = {"terminate called after throwing an instance of 'X'"};
  EXPECT_EQ(launch::python_exit_advice(kPython, failure), "");
  failure = abort_at_exit();
  failure.error = base::ErrorReport{.message = "E: x", .callstack = ""};
  EXPECT_EQ(launch::python_exit_advice(kPython, failure), "");
}

}  // namespace
}  // namespace lockstep
