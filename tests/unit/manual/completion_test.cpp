#include "lockstep/manual/completion.h"

#include <gtest/gtest.h>

#include "support/messages.h"
#include "unit/manual/sample_program.h"

namespace lockstep {
namespace {

using testing::expect_in;

TEST(Completion, BashHasTablesOfFlagsAndValues) {
  const std::string script = manual::bash_completion(testing::sample_program());
  expect_in(script, "_lockstep_commands='train version'\n");
  expect_in(script, "_lockstep_recipes='tiny'\n");
  expect_in(script, "    train) echo '--log-dir --device' ;;\n");
  expect_in(script, "    train:tiny) echo '--augment --no_augment' ;;\n");
  expect_in(script, "    *:--device) echo 'cpu cuda' ;;\n");
}

TEST(Completion, ZshDescribesFlags) {
  const std::string script = manual::zsh_completion(testing::sample_program());
  EXPECT_TRUE(script.starts_with("#compdef lockstep\n"));
  expect_in(script, "'--log-dir:it'\\''s a folder'\n");
  expect_in(script, "    *:--device) values=(cpu cuda) ;;\n");
}

TEST(Completion, FishKnowsWhatTakesAValue) {
  const std::string script = manual::fish_completion(testing::sample_program());
  expect_in(script, "-l log-dir -d 'it\\'s a folder' -r\n");
  expect_in(script, "-l device -d '.where' -x -a 'cpu cuda'\n");
  expect_in(script,
            "-n '__fish_seen_subcommand_from train; and "
            "__fish_seen_subcommand_from tiny' -l no_augment -d 'not: shift "
            "a\\\\b'\n");
}

}  // namespace
}  // namespace lockstep
