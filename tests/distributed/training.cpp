#include "distributed/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/checkpoint.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<Json> records(const fs::path& folder) {
  std::vector<Json> all;
  for (const std::string& line :
       base::split(base::read_file(folder / "metrics.jsonl"), '\n')) {
    if (!line.empty()) all.push_back(Json::parse(line));
  }
  return all;
}

}  // namespace

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words command_of(const Training& training) {
  const bool is_probe = training.recipe == "probe";
  Words command =
      training.world == 1
          ? Words{is_probe ? PROBE_WORKER : WORKER_PROGRAM, "train"}
          : Words{LOCKSTEP_PROGRAM, "train", "--nproc",
                  std::to_string(training.world), "--shutdown-timeout=10"};
  command.push_back(training.recipe);
  if (!training.folder.empty()) {
    command = command + Words{"--save_dir", training.folder.string()};
  }
  return command + training.flags;
}

ProcessOptions process_options(const Training& training) {
  ProcessOptions options;
  options.environment = {{"OMP_NUM_THREADS", "1"},
                         {"CUDA_VISIBLE_DEVICES", ""}};
  if (training.recipe == "probe") {
    options.environment["LOCKSTEP_WORKER"] = PROBE_WORKER;
  }
  return options;
}

ProcessResult run(const Training& training) {
  return run(command_of(training), process_options(training));
}

void run_well(const Training& training) {
  const ProcessResult result = run(training);
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
}

std::vector<std::string> metric_lines(const fs::path& folder) {
  std::vector<std::string> lines;
  for (const Json& record : records(folder)) {
    Json kept;
    for (const auto& [name, value] : record.items()) {
      if (!name.starts_with("perf/")) kept[name] = value;
    }
    lines.push_back(kept.dump());
  }
  return lines;
}

std::vector<double> metric(const fs::path& folder, const std::string& name) {
  std::vector<double> values;
  for (const Json& record : records(folder)) {
    if (!record.contains(name)) continue;
    const Json& value = record[name];
    values.push_back(value.is_number() ? value.get<double>() : NAN);
  }
  return values;
}

void expect_close(const std::vector<double>& actual,
                  const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  ASSERT_FALSE(actual.empty());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], tolerance) << "value " << i;
  }
}

Tree last_checkpoint(const fs::path& folder) {
  int64_t last = -1;
  fs::path path;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("checkpoint_step_") || !name.ends_with(".pt")) {
      continue;
    }
    const size_t begin = std::string("checkpoint_step_").size();
    const int64_t step = std::stoll(name.substr(begin));
    if (step > last) {
      last = step;
      path = entry.path();
    }
  }
  return load_checkpoint(path);
}

Tree learned(const Tree& checkpoint) {
  Tree tree = Tree::dict();
  for (const char* key :
       {"model_state_dict", "optimizer_state_dict", "global_step"}) {
    tree[key] = checkpoint.at(key).value();
  }
  tree["ema"] = checkpoint.at("lockstep").at("ema").value();
  return tree;
}

at::Tensor weight(const Tree& checkpoint, const std::string& name) {
  return checkpoint.at("model_state_dict").at(name).as_tensor();
}

std::vector<Seen> read_record(const fs::path& folder, int rank) {
  std::vector<Seen> all;
  const auto path = folder / ("rank_" + std::to_string(rank) + ".txt");
  for (const std::string& line : base::split(base::read_file(path), '\n')) {
    std::istringstream words(line);
    Seen seen;
    if (!(words >> seen.phase >> seen.checksum)) continue;
    for (int64_t index = 0; words >> index;) seen.indices.push_back(index);
    all.push_back(std::move(seen));
  }
  return all;
}

std::vector<std::vector<int64_t>> samples_of_steps(const fs::path& folder,
                                                   int world) {
  std::vector<std::vector<int64_t>> steps;
  for (int rank = 0; rank < world; ++rank) {
    size_t step = 0;
    for (const Seen& seen : read_record(folder, rank)) {
      if (seen.phase != "train") continue;
      if (step == steps.size()) steps.emplace_back();
      auto& samples = steps[step++];
      samples.insert(samples.end(), seen.indices.begin(), seen.indices.end());
    }
  }
  for (auto& samples : steps) std::sort(samples.begin(), samples.end());
  return steps;
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      names.push_back(entry.path().lexically_relative(folder));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lockstep::testing
