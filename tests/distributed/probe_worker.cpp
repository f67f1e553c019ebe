// lockstep-worker with the probe recipe alone.
#include <unistd.h>

#include "distributed/probe_recipe.h"
#include "lockstep/app/spare.h"
#include "lockstep/base/files.h"
#include "lockstep/cli/commands.h"
#include "lockstep/error.h"
#include "lockstep/program.h"

int main(int count, char** values) {
  const auto words = lockstep::app::arguments_of(count, values);
  int code = 0;
  const int failed = lockstep::run_program([&] {
    const bool is_eval = !words.empty() && words[0] == "eval";
    if (words.size() < 2 || (words[0] != "train" && !is_eval) ||
        words[1] != "probe") {
      throw lockstep::ConfigError(
          "this worker knows only 'train probe' and 'eval probe'");
    }
    const auto command =
        is_eval ? lockstep::cli::eval_command : lockstep::cli::train_command;
    lockstep::ProbeRecipe recipe;
    const auto write_to = [](int file) {
      return [file](std::string_view text) {
        lockstep::base::write_all(file, text);
      };
    };
    code = command(recipe, {words.begin() + 2, words.end()},
                   {.output = {.out = write_to(STDOUT_FILENO),
                               .err = write_to(STDERR_FILENO),
                               .columns = [] { return 0; },
                               .is_utf8 = true},
                    .environment = lockstep::base::process_environment()});
  });
  return failed != 0 ? failed : code;
}
