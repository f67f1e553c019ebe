// Settings of every type, as a training would have them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/options.h"

namespace lockstep {

struct SampleValues {
  int64_t batch_size = 4;
  double lr = 1e-4;
  double p_mean = -0.8;
  int64_t warmup_epochs = 5;
  int64_t warmup_steps = 0;
  bool use_amp = true;
  std::optional<bool> compile = {};
  std::string strategy = "random";
  std::string output_dir = "./output";
  std::optional<std::string> resume = {};
  std::optional<int64_t> max_tokens = {};
  std::optional<double> min_lr = 0.5;
  std::vector<double> cfg = {1.0, 2.5};
  std::vector<int64_t> gpu_ids = {};
  std::vector<std::string> tags = {"a"};
  int64_t layers = 50;

  bool operator==(const SampleValues&) const = default;
};

class Sample {
 public:
  Sample() {
    add_numbers();
    add_others();
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  SampleValues values;
  Options options;

 private:
  void add_numbers() {
    options.add("batch_size", values.batch_size, "samples per GPU",
                {.aliases = {"per_device_train_batch_size"},
                 .key = "data.batch_size",
                 .minimum = 1,
                 .group = "Data"});
    options.add("lr", values.lr, "peak learning rate",
                {.aliases = {"learning_rate"}, .minimum = 0, .maximum = 1});
    options.add("P_mean", values.p_mean, "mean of log t");
    options.add("warmup_epochs", values.warmup_epochs, "epochs of warm-up");
    options.add("warmup_steps", values.warmup_steps, "steps of warm-up");
    options.add(
        "max_tokens", values.max_tokens, "tokens per text",
        {.key = "data.max_tokens", .group = "Data", .shown_default = "all"});
    options.add("min_lr", values.min_lr, "lowest learning rate");
    options.add("cfg", values.cfg, "guidance scales", {.minimum = 0});
    options.add("gpu_ids", values.gpu_ids, "GPUs to use");
    options.add("layers", values.layers, "depth of the ResNet",
                {.choices = {"18", "50", "101"}});
  }
  void add_others() {
    options.add("use_amp", values.use_amp, "mixed precision");
    options.add("compile", values.compile, "fuse kernels");
    options.add("masking_strategy", values.strategy, "what is masked",
                {.choices = {"random", "block"}});
    options.add("output_dir", values.output_dir, "folder for results");
    options.add("resume", values.resume, "checkpoint to go on from",
                {.key = "checkpoint.resume_from"});
    options.add("tags", values.tags, "words for the tracker");
  }
};

// The action must throw a ConfigError that holds all the words.
inline void expect_config_error(const std::function<void()>& action,
                                const std::vector<std::string>& words) {
  try {
    action();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    for (const std::string& word : words) {
      EXPECT_NE(text.find(word), std::string::npos)
          << "'" << word << "' is missing in: " << text;
    }
    return;
  }
  ADD_FAILURE() << "no ConfigError";
}

}  // namespace lockstep
