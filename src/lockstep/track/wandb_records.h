// The records of a Weights & Biases run, as the bytes that wandb_log.h frames.
//
// All texts may hold any bytes: what is not UTF-8 is replaced, because readers
// refuse a record with one bad byte. `num` counts the records of a file from 1.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/track/gpu_metrics.h"
#include "lockstep/track/tracker.h"
#include "lockstep/track/wandb_config.h"

namespace lockstep::track {

// One value: {"samples", "width"} and "64".
struct WandbItem {
  std::vector<std::string> key = {};
  std::string json = {};
};

// A number or text as wandb reads it; NaN and infinities stand bare.
std::string wandb_json(double value);
std::string wandb_json(std::string_view text);

std::string header_record(int64_t num);

// The run's names and its whole config.
std::string run_record(int64_t num, const std::string& run_id,
                       const WandbConfig& config, double start_time);

// The machine and the command.
std::string environment_record(int64_t num, const std::string& run_id,
                               const WandbConfig& config,
                               std::span<const GpuModel> gpus);

std::string history_record(int64_t num, int64_t step,
                           std::span<const WandbItem> items);

// Readers do not derive a summary from the history.
std::string summary_record(int64_t num, std::span<const WandbItem> items);

// Paths are relative to the folder "files".
std::string media_record(int64_t num, std::span<const std::string> paths);

std::string stats_record(
    int64_t num, double unix_time,
    std::span<const std::pair<std::string, double>> metrics);

std::string console_record(int64_t num, const ConsoleText& text);

std::string exit_record(int64_t num, int exit_code, double runtime_seconds);
std::string final_record(int64_t num);
std::string footer_record(int64_t num);

}  // namespace lockstep::track
