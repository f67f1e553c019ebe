// eval, sample and prepare: what a recipe does besides training.
#include <fmt/format.h>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/divide.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/cli/commands.h"
#include "lockstep/comm/place.h"
#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/file_names.h"
#include "lockstep/error.h"
#include "lockstep/fid/image_score.h"
#include "lockstep/run/checkpoints.h"
#include "lockstep/run/run_folder.h"
#include "lockstep/run/session.h"

namespace lockstep {
namespace {

// Shows progress; a signal ends the process as usual.
GoOn shown_as(const char* label, Console& console) {
  return [label, &console](int64_t done, int64_t total) {
    console.progress({.label = label, .step = done, .total_steps = total});
    return true;
  };
}

// Returns the step of the run.
int64_t load_into(Learner& learner, const CommandLine& line) {
  return load_weights(line.checkpoint(), line.average(),
                      {.model = learner.model(),
                       .keys = learner.facts().keys,
                       .averaged = learner.parameter_names(),
                       .frozen = learner.facts().frozen});
}

void write_output(const std::filesystem::path& path, const std::string& bytes) {
  make_output_folder(path.parent_path());
  write_file_atomically(path, bytes);
}

void write_files(const std::vector<OutputFile>& files, int64_t step,
                 const std::filesystem::path& folder, Console& console) {
  for (const OutputFile& file : files) {
    const auto path = folder / file_name(file.name, step, 0);
    write_output(path, file.bytes);
    console.info(path.string());
  }
}

// Not where training puts its own.
std::filesystem::path sample_folder(const CommandLine& line) {
  std::string name = fmt::format("sampled_seed_{}", line.config().seed);
  if (line.average()) name += fmt::format("_ema_{}", *line.average());
  return std::filesystem::path(line.config().save_dir) / name;
}

// With --skip_bad_samples one that cannot be read becomes a line of `problems`.
std::vector<OutputFile> predict_one(Recipe& recipe, int64_t input,
                                    std::string& problems,
                                    const TrainConfig& config) {
  try {
    return recipe.predict(input);
  } catch (const Error& error) {
    const bool is_unreadable =
        dynamic_cast<const FormatError*>(&error) != nullptr ||
        dynamic_cast<const IoError*>(&error) != nullptr;
    if (!config.skip_bad_samples || !is_unreadable) throw;
    problems += fmt::format("  {}\n", error.what());
    return {};
  }
}

// Every rank takes its share of the user's inputs and writes their files.
void predict_inputs(Recipe& recipe, Learner& learner, Session& session,
                    const CommandLine& line) {
  const World& world = session.world();
  const auto folder = sample_folder(line);
  const Learner::Inference inference(learner);
  const int64_t total = divide_up(session.facts().num_inputs, world.size());
  std::string problems;
  for (int64_t k = 0; k < total; ++k) {
    world.status().set_phase(Phase::kSampling);
    session.console().progress(
        {.label = "sample", .step = k, .total_steps = total});
    const int64_t input = k * world.size() + world.rank();
    if (input >= session.facts().num_inputs) continue;
    const auto files = predict_one(recipe, input, problems, line.config());
    for (const OutputFile& file : files) {
      write_output(folder / file.name, file.bytes);
      if (file.is_shown && session.facts().num_inputs == 1) {
        session.console().info(std::string(trim(file.bytes)));
      }
    }
  }
  const std::string skipped = join(world.gather_texts(problems), "");
  session.console().finish_progress();
  if (!skipped.empty()) {
    session.console().info("--skip_bad_samples left these out:\n" + skipped);
  }
  session.console().info(
      fmt::format("{} inputs; what was made of them is in {}",
                  session.facts().num_inputs, folder.string()));
}

void validate(Recipe& recipe, Learner& learner, Session& session,
              const TrainConfig& config) {
  const auto metrics =
      evaluate(recipe, learner, session.data().validation, session.world(),
               {.batch_size = session.batch().per_process,
                .workers = static_cast<int>(config.workers),
                .seed = static_cast<uint64_t>(config.seed),
                .limit_batches = config.limit_val_batches},
               shown_as("evaluate", session.console()));
  session.console().finish_progress();
  if (!config.limit_val_batches) {
    session.console().info(
        fmt::format("samples: {}", session.data().validation->size()));
  }
  for (const auto& [name, value] : *metrics) {
    session.console().info(fmt::format("{}: {:.6f}", name, value));
  }
  session.world().run_on_rank0_and_broadcast([&] {
    write_files(recipe.result_files(*metrics), 0, config.save_dir,
                session.console());
  });
}

// Of generated images against the real ones. Throws for files of no use.
std::unique_ptr<ImageScore> make_score(Session& session,
                                       const TrainConfig& config) {
  const TaskInfo& facts = session.facts();
  if (facts.num_scored_items == 0) {
    throw ConfigError("--fid: the recipe " + facts.name +
                      " generates no images to score");
  }
  const std::string note = score_note(config.score);
  if (!note.empty()) session.console().info(note);
  return std::make_unique<ImageScore>(
      session.world(),
      ImageScoreConfig{.score = config.score,
                       .reference = session.data().reference,
                       .folder = config.save_dir,
                       .num_images = facts.num_scored_items,
                       .batch_size = session.batch().per_process,
                       .workers = static_cast<int>(config.workers),
                       .seed = static_cast<uint64_t>(config.seed)});
}

void score_images(Recipe& recipe, Learner& learner, Session& session,
                  std::optional<int64_t> average, ImageScore& score) {
  const auto value = score.measure(recipe, learner, nullptr,
                                   shown_as("score", session.console()));
  session.console().finish_progress();
  session.console().info(fmt::format(
      "{}: {:.6f} ({} images, {})", score.name(), *value,
      session.facts().num_scored_items,
      average ? fmt::format("moving average {}", *average) : "weights"));
}

int prepare_by_settings(Recipe& recipe,
                        const std::vector<std::string>& arguments,
                        const CommandContext& context) {
  CommandLine line(Command::kTrain, recipe);
  if (const auto text = line.parse(arguments, context.environment)) {
    context.output.out(*text);
    return 0;
  }
  Session session(recipe, line, context.output, context.environment);
  const auto learner = session.make_learner();
  session.with_memory_report([] { return "preparing the data"; },
                             [&] { session.fill_caches(); });
  session.console().info("prepared; `lockstep train` finds it");
  return 0;
}

}  // namespace

int eval_command(Recipe& recipe, const std::vector<std::string>& arguments,
                 const CommandContext& context) {
  CommandLine line(Command::kEval, recipe);
  if (const auto text = line.parse(arguments, context.environment)) {
    context.output.out(*text);
    return 0;
  }
  Session session(recipe, line, context.output, context.environment);
  const bool validates = session.data().validation != nullptr;
  if (!validates && !line.scores()) {
    throw ConfigError("there is no validation data to evaluate on");
  }
  // Before the validation: a wrong file shows at once.
  const auto score =
      line.scores() ? make_score(session, line.config()) : nullptr;
  const auto learner = session.make_learner();
  load_into(*learner, line);
  session.fill_caches();
  if (validates) validate(recipe, *learner, session, line.config());
  if (score) {
    score_images(recipe, *learner, session, line.average(), *score);
  }
  session.report_bad_samples();
  return 0;
}

int sample_command(Recipe& recipe, const std::vector<std::string>& arguments,
                   const CommandContext& context) {
  CommandLine line(Command::kSample, recipe);
  if (const auto text = line.parse(arguments, context.environment)) {
    context.output.out(*text);
    return 0;
  }
  Session session(recipe, line, context.output, context.environment);
  const TaskInfo facts = session.facts();
  if (facts.num_inputs == 0 && facts.num_sample_items == 0) {
    throw ConfigError("the recipe " + facts.name + " cannot sample");
  }
  const auto learner = session.make_learner();
  const int64_t step = load_into(*learner, line);
  if (facts.num_inputs > 0) {
    predict_inputs(recipe, *learner, session, line);
    return 0;
  }
  const auto items =
      sample_items(recipe, *learner, session.world(),
                   {.num_items = facts.num_sample_items,
                    .batch_size = session.batch().per_process,
                    .seed = static_cast<uint64_t>(line.config().seed)},
                   shown_as("sample", session.console()));
  session.console().finish_progress();
  session.world().run_on_rank0_and_broadcast([&] {
    write_files(render_items(recipe, *items, line.average()), step,
                sample_folder(line), session.console());
  });
  return 0;
}

int prepare_command(Recipe& recipe, const std::vector<std::string>& arguments,
                    const CommandContext& context) {
  if (recipe.prepares_by_settings(arguments)) {
    return prepare_by_settings(recipe, arguments, context);
  }
  if (place_from_environment(context.environment).world_size > 1) {
    throw ConfigError(
        "this prepare runs in one process, on several threads: start it "
        "without --nproc");
  }
  std::string text;
  {
    Console console({}, context.output);
    text = recipe.prepare(arguments, [&](int64_t done, int64_t total) {
      console.progress(
          {.label = "prepare", .step = done, .total_steps = total});
    });
    console.finish_progress();
  }
  context.output.out(text);
  return 0;
}

}  // namespace lockstep
