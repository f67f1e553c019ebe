#include "lockstep/track/curve_collector.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace lockstep::track {
namespace {

constexpr std::string_view kTrain = "train/";
constexpr std::string_view kValidation = "val/";
constexpr size_t kMostLossTerms = 7;  // As many as there are colours.

constexpr std::array kCurves = {
    std::pair("train/loss", &plot::RunCurves::train_loss),
    std::pair("val/loss", &plot::RunCurves::validation_loss),
    std::pair("train/learning_rate", &plot::RunCurves::learning_rate),
    std::pair("perf/samples_per_second", &plot::RunCurves::samples_per_second),
    std::pair("train/grad_norm", &plot::RunCurves::gradient_norm),
    std::pair("perf/peak_memory_gib", &plot::RunCurves::peak_memory_gib)};

// Every other metric of training is a term of the loss.
constexpr std::array<std::string_view, 4> kNotTerms = {
    "train/epoch", "train/epoch_loss", "train/loss_scale",
    "train/skipped_steps"};

}  // namespace

CurveCollector::CurveCollector(std::string title, PlottedMetric metric)
    : metric_(std::move(metric)), curves_{.title = std::move(title)} {
  curves_.better = metric_.better;
}

bool CurveCollector::add(const Record& record) {
  bool has_news = false;
  for (const auto& [name, value] : record.metrics) {
    plot::Series* series = series_of(name);
    if (series == nullptr) continue;
    series->add(static_cast<double>(record.step), value);
    has_news = true;
  }
  return has_news;
}

plot::Series* CurveCollector::series_of(const std::string& name) {
  for (const auto& [known, curve] : kCurves) {
    if (name == known) return &(curves_.*curve);
  }
  if (name.starts_with(kValidation)) {
    if (metric_.name.empty()) metric_.name = name;
    if (name != metric_.name) return nullptr;
    curves_.metric.name = name.substr(kValidation.size());
    return &curves_.metric.series;
  }
  const bool is_term =
      name.starts_with(kTrain) &&
      std::find(kNotTerms.begin(), kNotTerms.end(), name) == kNotTerms.end();
  return is_term ? loss_term(name.substr(kTrain.size())) : nullptr;
}

plot::Series* CurveCollector::loss_term(const std::string& name) {
  for (plot::NamedSeries& term : curves_.loss_terms) {
    if (term.name == name) return &term.series;
  }
  if (curves_.loss_terms.size() == kMostLossTerms) return nullptr;
  curves_.loss_terms.push_back({.name = name});
  return &curves_.loss_terms.back().series;
}

}  // namespace lockstep::track
