#include "lockstep/engine/validation_callback.h"

#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/engine/loop.h"
#include "lockstep/error.h"

namespace lockstep::engine {
namespace {

std::string missing_metric_text(const ValidationConfig& config,
                                const Metrics& metrics) {
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  return fmt::format(
      "best_metric is '{}', but evaluate() and derive() give: {}",
      config.metric, base::join(names, ", "));
}

}  // namespace

ValidationCallback::ValidationCallback(Task& task, ValidationConfig config)
    : task_(task), config_(std::move(config)) {}

void ValidationCallback::after_step(TrainLoop& loop, const Step& step) {
  TrainState& state = loop.state();
  state.due.validation = config_.data != nullptr &&
                         (config_.every.ends_with(step, state.step) ||
                          (loop.is_finished() && config_.every.is_set()));
}

bool ValidationCallback::due(const TrainLoop& loop) const {
  return loop.state().due.validation;
}

bool ValidationCallback::run(TrainLoop& loop) {
  const auto evaluation = evaluate(
      task_, loop.learner(), config_.data, loop.world(), config_.evaluation,
      loop.go_on("validate", base::Activity::kValidation));
  if (!evaluation) return false;
  const Metrics& metrics = evaluation->metrics;
  TrainState& state = loop.state();
  std::string text = fmt::format("validation at step {}:", state.step);
  Metrics records;
  for (const auto& [name, value] : metrics) {
    text += fmt::format(" {} {:.6g}", name, value);
    records.emplace_back("val/" + name, value);
  }
  loop.console().info(text);
  loop.record(std::move(records));
  const double* loss = find_metric(metrics, "loss");
  const double* metric = find_metric(metrics, config_.metric);
  if (metric == nullptr)
    throw ConfigError(missing_metric_text(config_, metrics));
  state.val_losses.add(loss != nullptr ? *loss : *metric, config_.keep_losses);
  loop.observe({.value = *metric,
                .name = config_.metric,
                .better = config_.better,
                .metrics = metrics});
  state.due.validation = false;
  return true;
}

}  // namespace lockstep::engine
