#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/doctor/job_checks.h"
#include "lockstep/doctor/probe.h"

namespace lockstep::doctor {
namespace {

using Json = nlohmann::json;

constexpr const char* kMark = "doctor result ";
constexpr const char* kStage = "doctor stage ";
constexpr double kPoorEfficiency = 0.6;
constexpr double kLargePart = 0.3;  // Of a step's time.

ProbeResult measure(const ProbeCommand& probe, const RecipeJob& job,
                    int num_processes) {
  base::Environment environment = probe.environment;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    environment.erase(name);
  }
  std::vector<std::string> command = {probe.launcher, "run", "--nproc-per-node",
                                      std::to_string(num_processes)};
  if (job.shares_gpus) command.emplace_back("--share-gpus");
  for (const char* word : {probe.worker.c_str(), "probe", "recipe"}) {
    command.emplace_back(word);
  }
  command.insert(command.end(), job.arguments.begin(), job.arguments.end());
  return run_probe(command, environment, probe.limit_seconds);
}

// A failed measurement, by the stage it had reached.
Finding problem_of(const ProbeResult& result, const ProbeCommand& probe,
                   const std::string& recipe) {
  const std::string stage = result.last_line(kStage);
  Finding finding{.check = stage.empty() ? "recipe" : stage,
                  .level = Level::kFailure,
                  .text = result.problem()};
  if (result.timed_out) {
    finding.kind = Class::kHang;
    finding.text =
        "not finished within " + base::duration_text(probe.limit_seconds);
    finding.mend = "lockstep doctor --limit 600 train " + recipe + " ...";
  } else if (stage == "data" || result.exit_code == 3 ||
             result.exit_code == 4) {
    finding.kind = Class::kFiles;
    finding.mend =
        "ls -l the path named above, and correct --data_path; "
        "lockstep train " +
        recipe + " --help names its data";
  } else if (result.exit_code == 7) {
    finding.kind = Class::kDevice;
    finding.mend =
        "a smaller --batch_size with more "
        "--gradient_accumulation_steps";
  } else {
    finding.mend = "lockstep train " + recipe + " --help";
  }
  return finding;
}

Finding data_finding(const Json& json) {
  Finding finding{.check = "data",
                  .text = fmt::format(
                      "{} training samples; the first and the last one decoded "
                      "in {:.1f} and {:.1f} ms",
                      json.value("samples", 0), json.value("first_ms", 0.0),
                      json.value("last_ms", 0.0)),
                  .kind = Class::kFiles};
  return finding;
}

Finding memory_finding(const Json& json) {
  const auto peak = json.value("peak_bytes", int64_t{0});
  const auto total = json.value("total_bytes", int64_t{0});
  Finding finding{.check = "batch memory", .kind = Class::kDevice};
  finding.text =
      fmt::format("a step with a batch of {} per process takes {} of {} on {}",
                  json.value("batch_size", int64_t{0}), base::bytes_text(peak),
                  base::bytes_text(total), json.value("device", "?"));
  if (total > 0 && peak > total / 10 * 9) {
    finding.level = Level::kWarning;
    finding.mend =
        "a smaller --batch_size with more "
        "--gradient_accumulation_steps";
  }
  return finding;
}

Finding batch_finding(const Json& json) {
  return {.check = "batch",
          .text = json.value("batch", "") + "; " + json.value("lr", "")};
}

std::string speed_text(const Json& json, int num_processes) {
  return fmt::format("{} process{} {:.3g} samples/s ({:.3g} ms per step)",
                     num_processes, num_processes == 1 ? "" : "es",
                     json.value("samples_per_second", 0.0),
                     json.value("step_ms", 0.0));
}

// Other processes take turns with the measured ones.
void note_load(const RecipeJob& job, Finding& finding) {
  if (job.load < job.cpus / 2) return;
  finding.level = Level::kWarning;
  finding.text +=
      fmt::format(", but the machine is busy (load {:.1f} on {:g} CPUs)",
                  job.load, job.cpus);
  finding.mend = "run this command again when the machine is idle";
}

Finding speed_finding(const Json& alone, const Json& together,
                      int num_processes) {
  Finding finding{.check = "speed", .text = "ten steps: "};
  if (num_processes == 1) {
    finding.text += speed_text(together, 1);
    return finding;
  }
  const double before = alone.value("samples_per_second", 0.0);
  const double gain =
      before > 0 ? together.value("samples_per_second", 0.0) / before : 0;
  finding.text +=
      fmt::format("{}, {}; predicted speed-up {:.2f}", speed_text(alone, 1),
                  speed_text(together, num_processes), gain);
  if (gain >= kPoorEfficiency * num_processes) return finding;
  finding.level = Level::kWarning;
  const Json parts = together.value("parts", Json::object());
  if (parts.value("data", 0.0) > kLargePart) {
    finding.text += ", ranks wait for data";
    finding.mend = "more --workers, or prepared data";
  } else if (parts.value("exchange", 0.0) > kLargePart) {
    finding.text += ", ranks wait for gradients of others";
    finding.mend = "a larger --batch_size or --gradient_accumulation_steps 4";
  } else {
    finding.mend = "--nproc 1, unless other processes load this machine now";
  }
  return finding;
}

// In turns, so that other load of the machine meets both.
std::vector<int> sizes_of(int num_processes) {
  if (num_processes == 1) return {1};
  return {1, num_processes, 1, num_processes};
}

void keep_faster(Json& kept, const Json& json) {
  const auto speed = [](const Json& of) {
    return of.is_object() ? of.value("samples_per_second", 0.0) : -1;
  };
  if (speed(json) > speed(kept)) kept = json;
}

}  // namespace

RecipeFindings check_recipe(const ProbeCommand& probe, const RecipeJob& job) {
  RecipeFindings result;
  const std::string& recipe = job.arguments.front();
  Json alone;
  Json together;
  for (const int size : sizes_of(job.num_processes)) {
    const ProbeResult probed = measure(probe, job, size);
    const Json json = Json::parse(probed.last_line(kMark), nullptr, false);
    if (!probed.is_good() || !json.is_object()) {
      result.findings.push_back(problem_of(probed, probe, recipe));
      return result;
    }
    if (size == 1) keep_faster(alone, json);
    if (size == job.num_processes) keep_faster(together, json);
  }
  result.findings = {data_finding(together), batch_finding(together),
                     memory_finding(together),
                     speed_finding(alone, together, job.num_processes)};
  note_load(job, result.findings.back());
  result.peak_host_bytes = together.value("peak_host_bytes", int64_t{0});
  result.checkpoint_bytes = together.value("checkpoint_bytes", int64_t{0});
  result.num_checkpoints = together.value("keep_last", int64_t{1});
  result.save_dir = together.value("save_dir", "");
  return result;
}

}  // namespace lockstep::doctor
