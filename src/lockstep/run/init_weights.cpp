#include "lockstep/run/init_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/printable.h"
#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/run/checkpoint_sections.h"
#include "lockstep/run/inner_weights.h"
#include "lockstep/run/run_folder.h"

namespace lockstep::run {
namespace {

// Files may hold thousands of tensors that the model does not have.
constexpr size_t kMaxUnexpected = 10;

// A name per line.
std::string listed(const std::vector<std::string>& names, size_t limit) {
  const size_t count = std::min(names.size(), limit);
  std::string lines;
  for (size_t i = 0; i < count; ++i) lines += "\n  " + names[i];
  if (count < names.size()) {
    lines += fmt::format("\n  and {} more", names.size() - count);
  }
  return lines;
}

std::vector<std::string> names_of(const torch::nn::Module& model) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named_tensors(model)) names.push_back(name);
  return names;
}

std::string loaded_text(const std::string& file, const InnerWeights& given,
                        const LoadReport& report) {
  std::string text = fmt::format("weights of {}: {} of {} tensors loaded", file,
                                 report.num_loaded, report.num_own());
  if (!given.prefix.empty()) {
    text += fmt::format(" from below '{}'", base::printable_line(given.prefix));
  }
  if (given.num_left_out > 0) {
    text += fmt::format("; {} others of the file left out", given.num_left_out);
  }
  return text;
}

std::string partial_text(const LoadReport& report) {
  std::string text;
  if (!report.mismatched.empty()) {
    text += "\nskipped, the shapes differ (initial values stay):" +
            listed(report.mismatched, report.mismatched.size());
  }
  if (!report.missing.empty()) {
    text += "\nnot in the file (initial values stay):" +
            listed(report.missing, report.missing.size());
  }
  if (!report.unexpected.empty()) {
    text += "\nin the file, but not in the model:" +
            listed(report.unexpected, kMaxUnexpected);
  }
  return text;
}

void check_report(const TrainConfig& config, const LoadReport& report) {
  const std::string& file = *config.init_from;
  if (report.num_loaded == 0) {
    throw ConfigError(fmt::format(
        "--init_from {}: none of its weights fits the model{}. Was it saved by "
        "a different model or configuration?",
        file, report.text()));
  }
  if (config.ignore_mismatched_sizes || report.mismatched.empty()) return;
  throw ConfigError(fmt::format(
      "--init_from {}: {} of the model's {} tensors have another shape in the "
      "file:{}\nSet the sizes of the model that saved it, or load only what "
      "fits with --ignore_mismatched_sizes (for a new head, such as another "
      "number of classes)",
      file, report.mismatched.size(), report.num_own(),
      listed(report.mismatched, report.mismatched.size())));
}

}  // namespace

void init_weights(const TrainConfig& config, const CheckpointLayout& layout,
                  engine::Learner& learner, const World& world,
                  track::Console& console) {
  const std::string& file = *config.init_from;
  require_file("--init_from", file);
  const Tree tree = load_checkpoint(file);
  const InnerWeights given = find_inner_weights(
      find_weights(tree, layout, file), names_of(learner.model()), file);
  const LoadReport report =
      load_module_state(learner.model(), given.weights, Strictness::kWhatFits);
  check_report(config, report);
  learner.restart_averages();
  if (report.is_complete()) {
    console.info(loaded_text(file, given, report));
  } else if (world.is_main()) {
    console.warn(loaded_text(file, given, report) + partial_text(report));
  }
}

}  // namespace lockstep::run
