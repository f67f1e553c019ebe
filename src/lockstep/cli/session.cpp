#include "lockstep/cli/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lockstep/base/files.h"
#include "lockstep/base/place_change.h"
#include "lockstep/base/status.h"
#include "lockstep/base/strings.h"
#include "lockstep/cli/startup_text.h"
#include "lockstep/comm/explain.h"
#include "lockstep/config/render.h"
#include "lockstep/engine/common_settings.h"
#include "lockstep/engine/out_of_memory.h"
#include "lockstep/error.h"
#include "lockstep/feature_caching.h"
#include "lockstep/image_scoring.h"
#include "lockstep/run/run_folder.h"

namespace lockstep::cli {
namespace {

constexpr size_t kMaxShown = 5;  // Messages about bad samples.

WorldConfig world_config(const TrainConfig& config) {
  WorldConfig world{.device = engine::parse_device_choice(config.device)};
  if (config.timeout) {
    world.timeout =
        std::chrono::milliseconds(static_cast<int64_t>(*config.timeout * 1000));
  }
  return world;
}

// Ranks with different flags would train different things.
void require_equal_settings(const World& world, const Options& options) {
  const auto texts = world.gather_texts(
      config::to_yaml(options) + "\nresume: " + options.value_text("resume"));
  const auto expected = base::split(texts[0], '\n');
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    const auto lines = base::split(texts[rank], '\n');
    for (size_t i = 0; i < std::min(lines.size(), expected.size()); ++i) {
      if (lines[i] == expected[i]) continue;
      throw ConfigError(fmt::format(
          "rank {} was started with '{}', rank 0 with '{}': start all "
          "processes with the same flags",
          rank, base::trim(lines[i]), base::trim(expected[i])));
    }
  }
}

}  // namespace

Session::Session(Recipe& recipe, const CommandLine& line,
                 const track::ConsoleOutput& output,
                 const base::Environment& environment)
    : line_(line),
      environment_(environment),
      world_(World::from_environment(world_config(line.config()), environment)),
      stream_(world_.device()),
      console_(std::make_unique<track::Console>(
          track::ConsoleConfig{.rank = world_.rank(),
                               .speaks = world_.is_main()},
          output)),
      recipe_(recipe.name()) {
  const TrainConfig& config = line.config();
  // Ranks that have trained since do not take part any more.
  if (world_.ranks_without_state().empty()) {
    require_equal_settings(world_, line.options());
  }
  if (config.deterministic) engine::require_determinism();
  precision_ =
      engine::resolve_precision(config, line.options(), world_.device());
  engine::apply_precision(precision_);
  resolve_batch();
  with_memory_report([] { return std::string("making the model"); },
                     [&] { build_task(recipe); });
  const bool trains =
      line.purpose() == Purpose::kTrain || line.purpose() == Purpose::kPrepare;
  if (trains && !config.deterministic) engine::choose_kernels(info_.shapes);
}

// An elastic job keeps its global batch, and its learning rate, when the number
// of processes changes; accumulation follows.
void Session::resolve_batch() {
  const TrainConfig& config = line_.config();
  const bool is_elastic = run::is_elastic(environment_);
  const bool joins_a_training = !world_.ranks_without_state().empty();
  if (is_elastic && !joins_a_training) {
    first_start_ = run::read_first_start(world_.run_on_rank0_and_broadcast([&] {
      const auto file =
          std::filesystem::path(config.save_dir) / run::kConfigFile;
      return line_.owns_folder() ? base::try_read_file(file).value_or("")
                                 : std::string();
    }));
  }
  if (first_start_) {
    divide_batch();
    return;
  }
  batch_ = engine::resolve_batch_size(
      config, line_.options(), world_.size(),
      is_elastic ? engine::Shares::kUneven : engine::Shares::kEqual);
  // Others know the first start: follow_world().
  if (!is_elastic || joins_a_training) return;
  first_start_ = run::FirstStart{.num_processes = world_.size(),
                                 .global_batch = batch_.effective(),
                                 .micro_batch = batch_.per_process};
}

void Session::divide_batch() {
  batch_ = engine::divide_batch(first_start_->global_batch,
                                first_start_->micro_batch, world_.size());
}

void Session::follow_world() {
  environment_ = base::current_environment(std::move(environment_));
  console_->set_rank(world_.rank(), world_.is_main());
  if (!run::is_elastic(environment_)) return;
  const std::string own =
      first_start_ ? run::first_start_line(*first_start_) : "";
  for (const std::string& line : world_.gather_texts(own)) {
    if (!line.empty()) first_start_ = run::read_first_start(line);
  }
  LOCKSTEP_CHECK(first_start_.has_value(), "ranks that have trained");
  divide_batch();
}

void Session::build_task(Recipe& recipe) {
  engine::seed_everything(line_.config().seed);
  task_ = recipe.build(line_.settings(), line_.purpose());
  info_ = task_->info();
  data_ = task_->data();
  const auto* scoring = ability<ImageScoring>(*task_);
  if (scoring != nullptr) reference_ = scoring->reference();
  if (!line_.config().skip_bad_samples) return;
  data_ = {.train = skipping(data_.train),
           .validation = skipping(data_.validation)};
  reference_ = skipping(reference_);
}

void Session::fill_cache() {
  auto* caching = ability<FeatureCaching>(*task_);
  if (caching == nullptr) return;
  bool is_shown = false;
  for (;;) {
    world_.status().set_phase(base::Phase::kLoadingData);
    const CacheProgress own =
        caching->fill_cache(Shard{world_.rank(), world_.size()});
    const int64_t left = world_.reduce(own.total - own.done, ReduceOp::kSum);
    const int64_t total = world_.reduce(own.total, ReduceOp::kSum);
    if (left > 0 || is_shown) {
      console_->progress(
          {.label = "prepare", .step = total - left, .total_steps = total});
      is_shown = true;
    }
    if (left <= 0) break;
  }
  if (is_shown) console_->finish_progress();
}

std::shared_ptr<const Dataset> Session::skipping(
    const std::shared_ptr<const Dataset>& data) {
  if (data == nullptr) return nullptr;
  skipping_.push_back(std::make_shared<data::SkipBadSamples>(data));
  return skipping_.back();
}

void Session::report_bad_samples() {
  if (skipping_.empty()) return;
  std::string own;
  bool has_more = false;
  for (const auto& data : skipping_) {
    const data::BadSamples bad = data->bad();
    has_more |= bad.count > static_cast<int64_t>(bad.messages.size());
    for (const std::string& message : bad.messages) own += message + '\0';
  }
  // Ranks and data sets report the same samples in several epochs.
  std::set<std::string> distinct;
  for (const std::string& text : world_.gather_texts(own)) {
    for (const auto& message : base::split(text, '\0'))
      distinct.emplace(message);
  }
  distinct.erase("");
  has_more = world_.any(has_more);
  if (distinct.empty()) return;
  std::string shown;
  size_t left = kMaxShown;
  for (const std::string& message : distinct) {
    if (left-- == 0) break;
    shown += "\n  " + message;
  }
  console_->info(fmt::format(
      "--skip_bad_samples: {}{} samples could not be read, others took their "
      "place{}",
      has_more ? "more than " : "", distinct.size(), shown));
}

std::unique_ptr<engine::Learner> Session::make_learner(
    std::optional<BucketLayout> bucket_layout) {
  std::unique_ptr<engine::Learner> learner;
  with_memory_report(
      [] { return std::string("making the model"); },
      [&] {
        const TrainConfig& config = line_.config();
        learner = std::make_unique<engine::Learner>(
            *task_, world_,
            engine::LearnerConfig{.optimization = config.optimization,
                                  .precision = precision_,
                                  .recipe = recipe_,
                                  .bucket_layout = std::move(bucket_layout)});
        engine::seed_dropout(config.seed, world_.rank());
      });
  if (line_.purpose() == Purpose::kTrain) {
    engine::check_halving(engine::parse_on_out_of_memory(line_.config().on_oom),
                          *learner, world_);
  }
  if (!precision_.note.empty()) console_->info(precision_.note);
  return learner;
}

bool Session::could_halve_batch() const {
  return line_.purpose() == Purpose::kTrain &&
         line_.config().on_oom == "fail" && batch_.per_process > 1 &&
         (world_.size() == 1 || world_.can_reform());
}

void Session::with_memory_report(
    const std::function<std::string()>& what, const std::function<void()>& work,
    const std::function<int64_t()>& batch_size) const {
  try {
    work();
  } catch (const std::exception& error) {
    if (!comm::is_out_of_memory(error)) throw;
    std::vector<std::string> remedies = info_.memory_remedies;
    if (batch_size && could_halve_batch()) {
      remedies.emplace_back(
          "--on_oom halve (smaller micro-batches when needed; the effective "
          "batch stays)");
    }
    throw DeviceError(out_of_memory_text(
        world_, what(), error.what(),
        batch_size ? batch_size() : batch_.per_process, remedies));
  }
}

}  // namespace lockstep::cli
