// What the workers execute: a program, a Python script or a Python module.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/error.h"
#include "lockstep/launch/options.h"

namespace lockstep::launch {

// The program cannot be started; nothing runs yet.
class ProgramError : public ConfigError {
 public:
  ProgramError(const std::string& what, int exit_code);
  // 127 when the program does not exist, 126 when it cannot be executed: the
  // codes of a shell.
  int program_exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

struct ProgramCommand {
  std::string file;                    // with its folder
  std::vector<std::string> arguments;  // from argv[0] on
  std::string title;                   // PROGRAM as the user wrote it
  bool is_python = false;              // a Python program, as far as known
};

// The file of a program: a path as it is, a name searched on PATH. Throws
// ProgramError.
std::string find_executable(const std::string& program,
                            const base::Environment& environment);

// Searches PATH. Throws ProgramError.
ProgramCommand find_command(const RunOptions& options,
                            const base::Environment& environment);

// The arguments of one worker: "${local_rank}" is replaced.
std::vector<std::string> arguments_for(const ProgramCommand& command,
                                       int local_rank);

// The error for a program that the kernel refuses to execute.
ProgramError exec_error(const ProgramCommand& command, int error_number);

}  // namespace lockstep::launch
