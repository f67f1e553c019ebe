// lockstep eval: metrics of a checkpoint, and the score of its images.
#include <fmt/format.h>

#include <filesystem>

#include "lockstep/cli/commands.h"
#include "lockstep/cli/inference.h"
#include "lockstep/cli/session.h"
#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/file_names.h"
#include "lockstep/error.h"
#include "lockstep/fid/image_score.h"
#include "lockstep/reporting.h"

namespace lockstep::cli {
namespace {

void write_report(const std::vector<OutputFile>& files,
                  const std::filesystem::path& folder,
                  track::Console& console) {
  for (const OutputFile& file : files) {
    const std::filesystem::path name = file.name;
    if (name.is_relative()) engine::require_below_folder(file.name);
    write_output(folder / name, file.bytes);
    console.info((folder / name).string());
  }
}

void validate(engine::Learner& learner, Session& session,
              const TrainConfig& config) {
  const auto result = engine::evaluate(
      session.task(), learner, session.data().validation, session.world(),
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
  for (const auto& [name, value] : result->metrics) {
    session.console().info(fmt::format("{}: {:.6f}", name, value));
  }
  auto* reporting = ability<Reporting>(session.task());
  if (reporting == nullptr) return;
  session.world().run_on_rank0_and_broadcast([&] {
    write_report(reporting->report(result->metrics, result->counts),
                 config.save_dir, session.console());
  });
}

// Scores generated images against real ones. Throws for unusable files.
std::unique_ptr<fid::ImageScore> make_score(Session& session,
                                            const TrainConfig& config) {
  const auto* scoring = ability<ImageScoring>(session.task());
  if (scoring == nullptr) {
    throw ConfigError("--fid: the recipe " + session.recipe() +
                      " generates no images to score");
  }
  const std::string note = fid::score_note(config.score);
  if (!note.empty()) session.console().info(note);
  return std::make_unique<fid::ImageScore>(
      session.world(),
      fid::ImageScoreConfig{.score = config.score,
                            .reference = session.reference(),
                            .folder = config.save_dir,
                            .num_images = scoring->num_images(),
                            .batch_size = session.batch().per_process,
                            .workers = static_cast<int>(config.workers),
                            .seed = static_cast<uint64_t>(config.seed)});
}

void score_images(engine::Learner& learner, Session& session,
                  std::optional<int64_t> average, fid::ImageScore& score) {
  ImageScoring& scoring = *ability<ImageScoring>(session.task());
  const auto value = score.measure(scoring, learner, nullptr,
                                   shown_as("score", session.console()));
  session.console().finish_progress();
  session.console().info(fmt::format(
      "{}: {:.6f} ({} images, {})", score.name(), *value, scoring.num_images(),
      average ? fmt::format("moving average {}", *average) : "weights"));
}

}  // namespace

int eval_command(Recipe& recipe, const std::vector<std::string>& arguments,
                 const CommandContext& context) {
  CommandLine line(Purpose::kEval, recipe, context.usage);
  if (const auto text = line.parse(arguments, context.environment)) {
    context.output.out(*text);
    return 0;
  }
  Session session(recipe, line, context.output, context.environment);
  const bool validates = session.data().validation != nullptr;
  if (!validates && !line.scores()) {
    throw ConfigError("there is no validation data to evaluate on");
  }
  // Before validation, so that a wrong file fails early.
  const auto score =
      line.scores() ? make_score(session, line.config()) : nullptr;
  const auto learner = session.make_learner();
  load_checkpoint(*learner, line);
  session.fill_cache();
  if (validates) validate(*learner, session, line.config());
  if (score) score_images(*learner, session, line.average(), *score);
  session.report_bad_samples();
  return 0;
}

}  // namespace lockstep::cli
