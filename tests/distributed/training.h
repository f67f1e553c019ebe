// Trainings as a user starts them, and what they leave in their run folders.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/checkpoint.h"
#include "support/messages.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {

using Words = std::vector<std::string>;

struct Training {
  std::string recipe = "tiny";  // "probe": the tests' own, probe_recipe.h.
  int world = 1;
  std::filesystem::path folder = {};  // --save_dir
  Words flags = {};
};

// One process: lockstep-worker train RECIPE; more: lockstep train --nproc. One
// thread each, on the CPU.
Words command_of(const Training& training);
ProcessOptions process_options(const Training& training);
ProcessResult run(const Training& training);
// Fails the test unless the training ends with 0.
void run_well(const Training& training);

Words operator+(Words words, const Words& more);

// The lines of metrics.jsonl less what depends on the clock. Numbers keep all
// their digits: equal texts are equal bits.
std::vector<std::string> metric_lines(const std::filesystem::path& folder);
// The values of one metric in the order of the lines; NaN for a text.
std::vector<double> metric(const std::filesystem::path& folder,
                           const std::string& name);
void expect_close(const std::vector<double>& actual,
                  const std::vector<double>& expected, double tolerance);

// The checkpoint of the highest step, not counting the best model.
Tree last_checkpoint(const std::filesystem::path& folder);
// What is learned: weights, optimizer and moving averages.
Tree learned(const Tree& checkpoint);
at::Tensor weight(const Tree& checkpoint, const std::string& name);

// What a rank of the probe recipe was asked for, in order.
struct Seen {
  std::string phase;      // "train", "validate", "sample"
  uint64_t checksum = 0;  // Checksum of the weights.
  std::vector<int64_t> indices = {};
};
std::vector<Seen> read_record(const std::filesystem::path& folder, int rank);
// Training samples of all ranks, batch by batch (one per step without
// accumulation), each step sorted.
std::vector<std::vector<int64_t>> samples_of_steps(
    const std::filesystem::path& folder, int world);

// Names of all files below a folder, sorted; empty when there is no folder.
std::vector<std::string> files_below(const std::filesystem::path& folder);

}  // namespace lockstep::testing
