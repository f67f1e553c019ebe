#include "lockstep/app/flags_document.h"

#include "lockstep/cli/command_line.h"
#include "lockstep/config/render.h"
#include "lockstep/options.h"
#include "lockstep/registry.h"

namespace lockstep::app {

std::string flags_document() {
  std::string text =
      "# Flags\n\n"
      "Made by `lockstep-worker flags`; a test compares them. Every flag is "
      "also a key of a\n`--config FILE.yaml`; flags win over files. "
      "`--print-config` writes the complete file of a run.\n";
  for (const RecipeEntry& entry : all_recipes()) {
    const auto recipe = entry.make();
    const cli::CommandLine line(Purpose::kTrain, *recipe);
    text += "\n## " + std::string(entry.name) + "\n\n" + recipe->summary() +
            "\n\n" + config::to_markdown(line.options());
  }
  return text;
}

}  // namespace lockstep::app
