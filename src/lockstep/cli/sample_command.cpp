// lockstep sample: samples from a checkpoint, or predictions on inputs.
#include <fmt/format.h>

#include "lockstep/base/divide.h"
#include "lockstep/base/status.h"
#include "lockstep/base/strings.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/inference.h"
#include "lockstep/cli/session.h"
#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/file_names.h"
#include "lockstep/error.h"
#include "lockstep/prediction.h"
#include "lockstep/sampling.h"

namespace lockstep::cli {
namespace {

// A folder separate from the samples of training.
std::filesystem::path sample_folder(const CommandLine& line) {
  std::string name = fmt::format("sampled_seed_{}", line.config().seed);
  if (line.average()) name += fmt::format("_ema_{}", *line.average());
  return std::filesystem::path(line.config().save_dir) / name;
}

// With --skip_bad_samples an unreadable input becomes a line of `problems`.
std::vector<OutputFile> predict_one(Prediction& prediction, int64_t input,
                                    std::string& problems,
                                    const TrainConfig& config) {
  try {
    return prediction.predict(input);
  } catch (const Error& error) {
    const bool is_unreadable =
        dynamic_cast<const FormatError*>(&error) != nullptr ||
        dynamic_cast<const IoError*>(&error) != nullptr;
    if (!config.skip_bad_samples || !is_unreadable) throw;
    problems += fmt::format("  {}\n", error.what());
    return {};
  }
}

// Every rank processes its part of the user's inputs and writes their files.
void predict_inputs(Prediction& prediction, engine::Learner& learner,
                    Session& session, const CommandLine& line) {
  const World& world = session.world();
  const int64_t num_inputs = prediction.num_inputs();
  const auto folder = sample_folder(line);
  const engine::Learner::Inference inference(learner);
  const int64_t total = base::divide_up(num_inputs, world.size());
  std::string problems;
  for (int64_t k = 0; k < total; ++k) {
    world.status().set_phase(base::Phase::kSampling);
    session.console().progress(
        {.label = "sample", .step = k, .total_steps = total});
    const int64_t input = k * world.size() + world.rank();
    if (input >= num_inputs) continue;
    const auto files = predict_one(prediction, input, problems, line.config());
    for (const OutputFile& file : files) {
      engine::require_below_folder(file.name);
      write_output(folder / file.name, file.bytes);
      if (file.is_shown && num_inputs == 1) {
        session.console().info(std::string(base::trim(file.bytes)));
      }
    }
  }
  const std::string skipped = base::join(world.gather_texts(problems), "");
  session.console().finish_progress();
  if (!skipped.empty()) {
    session.console().info("--skip_bad_samples left these out:\n" + skipped);
  }
  session.console().info(fmt::format("{} inputs; the results are in {}",
                                     num_inputs, folder.string()));
}

void draw_samples(Sampling& sampling, engine::Learner& learner,
                  Session& session, const CommandLine& line, int64_t step) {
  const auto items =
      engine::sample_items(sampling, learner, session.world(),
                           {.num_items = sampling.num_items(),
                            .batch_size = session.batch().per_process,
                            .seed = static_cast<uint64_t>(line.config().seed)},
                           shown_as("sample", session.console()));
  session.console().finish_progress();
  session.world().run_on_rank0_and_broadcast([&] {
    write_files(engine::render_items(sampling, *items, line.average()), step,
                sample_folder(line), session.console());
  });
}

}  // namespace

int sample_command(Recipe& recipe, const std::vector<std::string>& arguments,
                   const CommandContext& context) {
  CommandLine line(Purpose::kSample, recipe, context.usage);
  if (const auto text = line.parse(arguments, context.environment)) {
    context.output.out(*text);
    return 0;
  }
  Session session(recipe, line, context.output, context.environment);
  auto* prediction = ability<Prediction>(session.task());
  auto* sampling = ability<Sampling>(session.task());
  const bool predicts = prediction != nullptr && prediction->num_inputs() > 0;
  const bool samples = sampling != nullptr && sampling->num_items() > 0;
  if (!predicts && !samples) {
    throw ConfigError("the recipe " + session.recipe() + " cannot sample");
  }
  const auto learner = session.make_learner();
  const int64_t step = load_checkpoint(*learner, line);
  if (predicts) {
    predict_inputs(*prediction, *learner, session, line);
  } else {
    draw_samples(*sampling, *learner, session, line, step);
  }
  return 0;
}

}  // namespace lockstep::cli
