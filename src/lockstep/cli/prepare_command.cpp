// lockstep prepare: prepares data once, before training.
#include "lockstep/cli/commands.h"
#include "lockstep/cli/session.h"
#include "lockstep/comm/place.h"
#include "lockstep/error.h"
#include "lockstep/preparation.h"

namespace lockstep::cli {
namespace {

int fill_cache(Recipe& recipe, const std::vector<std::string>& arguments,
               const CommandContext& context) {
  CommandLine line(Purpose::kPrepare, recipe, context.usage);
  if (const auto text = line.parse(arguments, context.environment)) {
    context.output.out(*text);
    return 0;
  }
  Session session(recipe, line, context.output, context.environment);
  const auto learner = session.make_learner();
  session.with_memory_report([] { return "preparing the data"; },
                             [&] { session.fill_cache(); });
  session.console().info("prepared; `lockstep train` finds it");
  return 0;
}

}  // namespace

int prepare_command(Recipe& recipe, const std::vector<std::string>& arguments,
                    const CommandContext& context) {
  auto* preparation = ability<Preparation>(recipe);
  if (preparation != nullptr && !preparation->takes(arguments)) {
    return fill_cache(recipe, arguments, context);
  }
  if (comm::place_from_environment(context.environment).world_size > 1) {
    throw ConfigError(
        "this prepare runs in one process, on several threads: start it "
        "without --nproc");
  }
  if (preparation == nullptr) {
    context.output.out("the recipe " + recipe.name() +
                       " has nothing to prepare\n");
    return 0;
  }
  std::string text;
  {
    track::Console console({}, context.output);
    text = preparation->prepare(arguments, [&](int64_t done, int64_t total) {
      console.progress(
          {.label = "prepare", .step = done, .total_steps = total});
    });
    console.finish_progress();
  }
  context.output.out(text);
  return 0;
}

}  // namespace lockstep::cli
