#include "lockstep/launch/program.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "support/temp_dir.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;
using testing::TempDir;

launch::ProgramCommand command_for(const Arguments& arguments,
                                   base::Environment environment = {}) {
  environment.emplace("PATH", "/usr/bin:/bin");
  return launch::find_command(launch::parse_run_options(arguments, environment),
                              environment);
}

int code_for(const std::string& program) {
  try {
    command_for({program});
  } catch (const launch::ProgramError& error) {
    EXPECT_NE(std::string(error.what()).find(program), std::string::npos);
    return error.program_exit_code();
  }
  return 0;
}

TEST(Program, IsSearchedOnPath) {
  const launch::ProgramCommand command = command_for({"true", "a"});
  EXPECT_TRUE(command.file.ends_with("/true"));
  EXPECT_EQ(command.arguments, (Arguments{"true", "a"}));
}

TEST(Program, APythonFileRunsUnderPython) {
  const TempDir folder;
  const auto script = folder.write("train.py", "");
  const launch::ProgramCommand command = command_for({script, "--lr", "1"});
  EXPECT_TRUE(command.file.ends_with("/python3"));
  EXPECT_EQ(command.arguments,
            (Arguments{"python3", "-u", script, "--lr", "1"}));
  EXPECT_EQ(command_for({script}, {{"PYTHON_EXEC", "/bin/sh"}}).file,
            "/bin/sh");
}

TEST(Program, AModuleRunsUnderPython) {
  EXPECT_EQ(command_for({"-m", "pkg.train", "x"}).arguments,
            (Arguments{"python3", "-u", "-m", "pkg.train", "x"}));
}

TEST(Program, RunPathRunsAnyFileInPython) {
  const TempDir folder;
  const auto script = folder.write("train", "");
  const launch::ProgramCommand command =
      command_for({"--run-path", script, "x"});
  ASSERT_EQ(command.arguments.size(), 6u);
  EXPECT_EQ(command.arguments[2], "-c");
  EXPECT_EQ(command.arguments[4], script);
  EXPECT_EQ(command.arguments[5], "x");
}

TEST(Program, PythonProgramsAreKnown) {
  const TempDir folder;
  const auto script = folder.write_script("train.py", "#!/bin/sh\n");
  EXPECT_TRUE(command_for({script}).is_python);
  EXPECT_TRUE(command_for({"-m", "pkg"}).is_python);
  EXPECT_TRUE(command_for({"python3", "x.py"}).is_python);
  EXPECT_FALSE(command_for({"--no-python", script}).is_python);
  EXPECT_FALSE(command_for({"true"}).is_python);
}

TEST(Program, NoPythonRunsAScriptAsGiven) {
  const TempDir folder;
  const auto script = folder.write_script("train.py", "#!/bin/sh\n");
  EXPECT_EQ(command_for({"--no-python", script}).file, script);
}

TEST(Program, MissingAndUnusableOnesHaveTheCodesOfAShell) {
  const TempDir folder;
  EXPECT_EQ(code_for("./no-such-program"), 127);
  EXPECT_EQ(code_for("no-such-program"), 127);
  EXPECT_EQ(code_for("./no-such-script.py"), 127);
  EXPECT_EQ(code_for(folder.write("plain", "text")), 126);
  EXPECT_EQ(code_for(folder.path().string()), 126);
}

TEST(Program, LocalRankIsPutIntoArguments) {
  const launch::ProgramCommand command =
      command_for({"true", "--out=${local_rank}.log"});
  EXPECT_EQ(launch::arguments_for(command, 3),
            (Arguments{"true", "--out=3.log"}));
}

TEST(Program, AnExecErrorNamesTheProgram) {
  const launch::ProgramError error =
      launch::exec_error({.file = "", .arguments = {}, .title = "./x"}, ENOENT);
  EXPECT_EQ(error.program_exit_code(), 127);
  EXPECT_NE(std::string(error.what()).find("'./x'"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
