#include "lockstep/manual/man_page.h"

#include <gtest/gtest.h>

#include "support/messages.h"
#include "unit/manual/sample_program.h"

namespace lockstep {
namespace {

using testing::expect_in;

TEST(ManPage, TheProgramsPageListsCommandsRecipesAndPages) {
  const std::string page = manual::man_page(testing::sample_program());
  EXPECT_TRUE(
      page.starts_with(".TH LOCKSTEP 1 \"\" \"lockstep 1.2\" \"Lockstep\"\n"))
      << page;
  expect_in(page, ".TP\n\\fBtrain\\fR RECIPE [flags]\ntrain a recipe\n");
  expect_in(page, ".SH RECIPES\n.TP\n\\fBtiny\\fR\na first look\n");
  expect_in(page, ".SH SEE ALSO\n\\fBlockstep\\-train\\fR(1)\n");
}

TEST(ManPage, ACommandsPageHasItsFlagsBySection) {
  const manual::Program program = testing::sample_program();
  const std::string page = manual::man_page(program, program.commands[0]);
  expect_in(page, ".SH NAME\nlockstep\\-train \\- train a recipe\n");
  expect_in(page,
            ".SS Launching\n.TP\n\\fB\\-\\-log\\-dir\\fR \\fIFOLDER\\fR\n");
  expect_in(page, ".SH FLAGS OF TINY\n.SS Tiny\n");
}

TEST(ManPage, NoTextBecomesAMacro) {
  const manual::Program program = testing::sample_program();
  const std::string page = manual::man_page(program, program.commands[0]);
  expect_in(page, "\n\\&.where (default: auto)\n");
  expect_in(page, "\\fB\\-\\-[no_]augment\\fR\nshift a\\eb\n");
}

}  // namespace
}  // namespace lockstep
