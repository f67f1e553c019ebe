#include "lockstep/doctor/verify_resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/doctor/held_signals.h"
#include "lockstep/doctor/probe.h"
#include "lockstep/error.h"
#include "lockstep/launch/program_flags.h"
#include "lockstep/launch/torch_search.h"
#include "lockstep/launch/worker_program.h"

namespace lockstep::doctor {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr const char* kHelp =
    "usage: lockstep verify-resume [--steps N] RECIPE [flags]\n\n"
    "Trains N steps (10), then trains again, ends after half of them and\n"
    "resumes, and compares weights, optimizer state, averages, generators and\n"
    "metrics of both, bit by bit. Flags are those of lockstep train, for\n"
    "example --nproc 2 --device cpu. Nothing is left behind unless they "
    "differ.\n"
    "Exit code: 0 equal, 1 different.\n";
constexpr double kLimitSeconds = 6 * 3600;
constexpr const char* kResultMark = "doctor result ";
constexpr size_t kMostShown = 8;

struct Options {
  int64_t steps = 10;
  Words training = {};  // RECIPE and flags.
};

Options parse(std::span<const std::string> arguments) {
  Options options;
  size_t next = 0;
  if (!arguments.empty() && arguments[0].starts_with("--steps")) {
    const bool is_joined = arguments[0].starts_with("--steps=");
    const std::string text = is_joined              ? arguments[0].substr(8)
                             : arguments.size() > 1 ? arguments[1]
                                                    : "";
    const auto steps = base::parse_integer(text);
    if (!steps || *steps < 2) {
      throw ConfigError("--steps '" + text + "': it must be 2 or above");
    }
    options.steps = *steps;
    next = is_joined ? 1 : 2;
  }
  options.training.assign(arguments.begin() + static_cast<int64_t>(next),
                          arguments.end());
  if (options.training.empty()) throw ConfigError(kHelp);
  for (const char* flag : {"save_dir", "resume", "n_steps", "epochs",
                           "stop_after_steps", "overwrite", "fast_dev_run"}) {
    if (!launch::find_flag(options.training, flag)) continue;
    throw ConfigError(fmt::format(
        "lockstep verify-resume sets --{} itself; leave it out (--steps N "
        "before the recipe says how long it trains)",
        flag));
  }
  return options;
}

// Numbers of the metrics by "name at step".
std::map<std::string, std::string> read_metrics(const fs::path& folder) {
  std::map<std::string, std::string> values;
  std::ifstream file(folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object()) continue;
    const std::string step = record.value("step", Json()).dump();
    for (const auto& [name, value] : record.items()) {
      // What depends on the clock.
      if (name.starts_with("perf/") || !value.is_number()) continue;
      values[fmt::format("{} at step {}", name, step)] = value.dump();
    }
  }
  return values;
}

struct Comparison {
  int64_t num_equal = 0;
  Words different = {};
};

void compare_metrics(const fs::path& whole, const fs::path& resumed,
                     Comparison& comparison) {
  const auto expected = read_metrics(whole);
  const auto actual = read_metrics(resumed);
  for (const auto& [name, value] : expected) {
    const auto at = actual.find(name);
    if (at != actual.end() && at->second == value) {
      ++comparison.num_equal;
    } else {
      comparison.different.push_back(
          fmt::format("{}: {} without a stop, {} resumed", name, value,
                      at == actual.end() ? "missing" : at->second));
    }
  }
}

class Verification {
 public:
  Verification(Options options, const base::Environment& environment,
               const std::function<void(std::string_view)>& write)
      : options_(std::move(options)),
        environment_(environment),
        write_(write),
        launcher_(fs::read_symlink("/proc/self/exe").string()),
        folder_(base::make_unique_folder(fs::temp_directory_path(),
                                         "lockstep_verify_")) {}

  ~Verification() {
    std::error_code ignored;
    if (!is_kept_) fs::remove_all(folder_, ignored);
  }
  Verification(const Verification&) = delete;
  Verification& operator=(const Verification&) = delete;

  int run() {
    const int64_t half = options_.steps / 2;
    say(fmt::format("training {} steps without a stop", options_.steps));
    train("whole", {});
    say(fmt::format("training {} steps, then ending", half));
    train("stopped", {"--stop_after_steps", std::to_string(half)});
    say("resuming");
    train("stopped", {"--resume", "latest", "--stop_after_steps", "none"});
    Comparison comparison;
    compare_checkpoints(comparison);
    compare_metrics(folder_ / "whole", folder_ / "stopped", comparison);
    return report(comparison);
  }

 private:
  void say(const std::string& text) { write_(text + "\n"); }

  void train(const char* name, const Words& more) {
    Words command = {launcher_, "train"};
    command.insert(command.end(), options_.training.begin(),
                   options_.training.end());
    const std::array added = {
        std::string("--n_steps"),   std::to_string(options_.steps),
        std::string("--save_dir"),  (folder_ / name).string(),
        std::string("--log_every"), std::string("1")};
    command.insert(command.end(), added.begin(), added.end());
    command.insert(command.end(), more.begin(), more.end());
    const ProbeResult result = run_probe(command, environment_, kLimitSeconds);
    if (result.is_good()) return;
    throw Error(fmt::format(
        "the training itself failed, so nothing was compared: {}; mend that "
        "first: lockstep train {}",
        result.problem(), base::join(options_.training, " ")));
  }

  // The files of the last step, which both runs have.
  void compare_checkpoints(Comparison& comparison) {
    // Not LOCKSTEP_WORKER: that of an own recipe only trains.
    const std::string worker = launch::find_companion(
        "lockstep-worker", environment_, launch::own_folder());
    int num_files = 0;
    for (const auto& entry :
         fs::recursive_directory_iterator(folder_ / "whole")) {
      const std::string extension = entry.path().extension();
      if (extension != ".pt" && extension != ".pth") continue;
      const fs::path name = entry.path().lexically_relative(folder_ / "whole");
      const fs::path other = folder_ / "stopped" / name;
      ++num_files;
      if (!fs::exists(other)) {
        comparison.different.push_back(name.string() + " is missing");
        continue;
      }
      const ProbeResult result =
          run_probe({worker, "probe", "checkpoints", entry.path().string(),
                     other.string()},
                    launch::with_torch(environment_, worker), kLimitSeconds);
      if (!result.is_good()) throw Error(result.problem());
      const Json json = Json::parse(result.last_line(kResultMark));
      comparison.num_equal += json.at("equal").get<int64_t>();
      for (const auto& path : json.at("different")) {
        comparison.different.push_back(name.string() + ": " +
                                       path.get<std::string>());
      }
    }
    if (num_files == 0) {
      comparison.different.push_back("the training saved no checkpoint");
    }
  }

  int report(const Comparison& comparison) {
    if (comparison.different.empty()) {
      say(
          fmt::format("equal: {} tensors, states and metrics, bit for bit. A "
                      "run that is stopped can be resumed",
                      comparison.num_equal));
      return 0;
    }
    say(fmt::format("DIFFERENT: {} of {} tensors, states and metrics",
                    comparison.different.size(),
                    comparison.num_equal +
                        static_cast<int64_t>(comparison.different.size())));
    for (size_t i = 0; i < std::min(comparison.different.size(), kMostShown);
         ++i) {
      say("  " + comparison.different[i]);
    }
    if (comparison.different.size() > kMostShown) say("  ...");
    say("On a GPU kernels may add in another order each time: try "
        "--deterministic. In an own recipe look for state that is not in "
        "model, optimizer or the batch's seeds.");
    say("Both runs are in " + folder_.string());
    is_kept_ = true;
    return 1;
  }

  Options options_;
  const base::Environment& environment_;
  const std::function<void(std::string_view)>& write_;
  std::string launcher_;
  HeldSignals signals_;  // Until the folder is removed.
  fs::path folder_;
  bool is_kept_ = false;
};

}  // namespace

int verify_resume_command(std::span<const std::string> arguments,
                          const base::Environment& environment,
                          const std::function<void(std::string_view)>& write) {
  if (!arguments.empty() &&
      (arguments[0] == "--help" || arguments[0] == "-h")) {
    write(kHelp);
    return 0;
  }
  try {
    return Verification(parse(arguments), environment, write).run();
  } catch (const Interrupted& interrupted) {
    raise(interrupted.signal);
    return 128 + interrupted.signal;
  }
}

}  // namespace lockstep::doctor
