#include <fmt/format.h>

#include <optional>

#include "lockstep/base/strings.h"
#include "lockstep/doctor/job_checks.h"
#include "lockstep/doctor/probe.h"
#include "lockstep/doctor/recipe_findings.h"

namespace lockstep::doctor {
namespace {

constexpr const char* kMark = "doctor result ";
constexpr const char* kStage = "doctor stage ";

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
    if (!result.unkillable.empty()) finding.text += "; " + result.unkillable;
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

// In turns, so that other load of the machine meets both.
std::vector<int> sizes_of(int num_processes) {
  if (num_processes == 1) return {1};
  return {1, num_processes, 1, num_processes};
}

void keep_faster(std::optional<RecipeMeasurement>& kept,
                 const RecipeMeasurement& measured) {
  if (!kept || measured.samples_per_second > kept->samples_per_second) {
    kept = measured;
  }
}

}  // namespace

RecipeFindings check_recipe(const ProbeCommand& probe, const RecipeJob& job) {
  RecipeFindings result;
  const std::string& recipe = job.arguments.front();
  std::optional<RecipeMeasurement> alone;
  std::optional<RecipeMeasurement> together;
  for (const int size : sizes_of(job.num_processes)) {
    const ProbeResult probed = measure(probe, job, size);
    const auto measured = parse_measurement(probed.last_line(kMark));
    if (!probed.is_good() || !measured) {
      result.findings.push_back(problem_of(probed, probe, recipe));
      return result;
    }
    if (size == 1) keep_faster(alone, *measured);
    if (size == job.num_processes) keep_faster(together, *measured);
  }
  result.findings = {data_finding(*together), batch_finding(*together),
                     batch_memory_finding(*together),
                     speed_finding({.alone = *alone,
                                    .together = *together,
                                    .num_processes = job.num_processes,
                                    .load = job.load,
                                    .cpus = job.cpus})};
  result.measured = *std::move(together);
  return result;
}

}  // namespace lockstep::doctor
