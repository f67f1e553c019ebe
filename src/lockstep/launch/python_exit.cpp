#include "lockstep/launch/python_exit.h"

#include <algorithm>
#include <csignal>

namespace lockstep::launch {

std::string python_exit_advice(const ProgramCommand& command,
                               const Failure& failure) {
  if (!command.is_python || failure.error || failure.exit_code != -SIGABRT) {
    return "";
  }
  const auto& lines = failure.last_lines;
  const bool is_known =
      std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
        return line == "terminate called without an active exception";
      });
  if (!is_known) return "";
  return "  The program ended while Gloo's threads were still running, and one "
         "of them aborted it.\n"
         "  Call torch.distributed.destroy_process_group() at the end of the "
         "program. Where it is called,\n"
         "  import torch.distributed.nn before init_process_group(): imported "
         "by DDP, it keeps the group alive.\n";
}

}  // namespace lockstep::launch
