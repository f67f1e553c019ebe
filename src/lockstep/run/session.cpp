#include "lockstep/run/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lockstep/base/status.h"
#include "lockstep/base/strings.h"
#include "lockstep/cli/startup_text.h"
#include "lockstep/comm/explain.h"
#include "lockstep/config/render.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr size_t kMaxShown = 5;  // Messages of bad samples.

WorldConfig world_config(const TrainConfig& config) {
  WorldConfig world{.device = parse_device_choice(config.device)};
  if (config.timeout) {
    world.timeout =
        std::chrono::milliseconds(static_cast<int64_t>(*config.timeout * 1000));
  }
  return world;
}

// Ranks that were started with other flags would train something else.
void require_equal_settings(const World& world, const Options& options) {
  const auto texts = world.gather_texts(
      to_yaml(options) + "\nresume: " + options.value_text("resume"));
  const auto expected = split(texts[0], '\n');
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    const auto lines = split(texts[rank], '\n');
    for (size_t i = 0; i < std::min(lines.size(), expected.size()); ++i) {
      if (lines[i] == expected[i]) continue;
      throw ConfigError(fmt::format(
          "rank {} was started with '{}', rank 0 with '{}': start all "
          "processes with the same flags",
          rank, trim(lines[i]), trim(expected[i])));
    }
  }
}

}  // namespace

Session::Session(Recipe& recipe, const CommandLine& line,
                 const ConsoleOutput& output, const Environment& environment)
    : recipe_(recipe),
      line_(line),
      environment_(environment),
      world_(World::from_environment(world_config(line.config()), environment)),
      console_(std::make_unique<Console>(
          ConsoleConfig{.rank = world_.rank(), .speaks = world_.is_main()},
          output)) {
  const TrainConfig& config = line.config();
  require_equal_settings(world_, line.options());
  if (config.deterministic) require_determinism();
  precision_ = resolve_precision(config, line.options(), world_.device());
  apply_precision(precision_);
  batch_ = resolve_batch_size(config, line.options(), world_.size());
  if (line.command() == Command::kSample) {
    recipe.prepare_sampling(config);
  } else if (line.command() == Command::kEval) {
    data_ = recipe.open_eval_data(config);
  } else {
    data_ = recipe.open_data(config);
  }
  if (config.skip_bad_samples) skip_bad_samples();
  facts_ = recipe.facts();
  if (line.command() == Command::kTrain && !config.deterministic) {
    choose_kernels(facts_.shapes);
  }
}

void Session::fill_caches() {
  const Shard share{world_.rank(), world_.size()};
  bool is_shown = false;
  for (;;) {
    world_.status().set_phase(Phase::kLoadingData);
    const CacheProgress own = recipe_.fill_cache(share);
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

void Session::skip_bad_samples() {
  for (auto* data : {&data_.train, &data_.validation, &data_.reference}) {
    if (*data == nullptr) continue;
    skipping_.push_back(std::make_shared<SkipBadSamples>(*data));
    *data = skipping_.back();
  }
}

void Session::report_bad_samples() {
  if (skipping_.empty()) return;
  std::string own;
  bool has_more = false;
  for (const auto& data : skipping_) {
    const BadSamples bad = data->bad();
    has_more |= bad.count > static_cast<int64_t>(bad.messages.size());
    for (const std::string& message : bad.messages) own += message + '\0';
  }
  // Ranks meet the same samples in several epochs, and so do the data sets.
  std::set<std::string> distinct;
  for (const std::string& text : world_.gather_texts(own)) {
    for (const auto& message : split(text, '\0')) distinct.emplace(message);
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

std::unique_ptr<Learner> Session::make_learner(
    std::optional<BucketLayout> bucket_layout) {
  std::unique_ptr<Learner> learner;
  with_memory_report(
      [] { return std::string("making the model"); },
      [&] {
        const TrainConfig& config = line_.config();
        seed_everything(config.seed);
        learner = std::make_unique<Learner>(
            recipe_, world_,
            LearnerConfig{.optimization = config.optimization,
                          .precision = precision_,
                          .bucket_layout = std::move(bucket_layout)});
        seed_dropout(config.seed, world_.rank());
      });
  if (!precision_.note.empty()) console_->info(precision_.note);
  return learner;
}

void Session::with_memory_report(const std::function<std::string()>& what,
                                 const std::function<void()>& work) const {
  try {
    work();
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw DeviceError(out_of_memory_text(world_, what(), error.what(),
                                         batch_.per_process,
                                         facts_.memory_remedies));
  }
}

}  // namespace lockstep
