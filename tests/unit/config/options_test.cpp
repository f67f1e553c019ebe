#include "lockstep/options.h"

#include <gtest/gtest.h>

#include <limits>

#include "lockstep/config/parse.h"
#include "lockstep/config/render.h"
#include "unit/config/sample_settings.h"

namespace lockstep {
namespace {

TEST(Options, FoundByNameAndAliasInEitherSpelling) {
  const Sample sample;
  for (const char* name : {"batch_size", "batch-size", "learning_rate",
                           "learning-rate", "P_mean"}) {
    EXPECT_TRUE(sample.options.has(name)) << name;
  }
  for (const char* name : {"data.batch_size", "batch", "", "p_mean"}) {
    EXPECT_FALSE(sample.options.has(name)) << name;
  }
}

TEST(Options, AskingForAnUnknownNameIsABug) {
  const Sample sample;
  EXPECT_THROW(sample.options.source("nothing"), ConfigError);
  EXPECT_THROW(sample.options.value_text("nothing"), ConfigError);
}

TEST(Options, ValueTextIsYaml) {
  Sample sample;
  EXPECT_EQ(sample.options.value_text("batch-size"), "4");
  EXPECT_EQ(sample.options.value_text("learning_rate"), "0.0001");
  EXPECT_EQ(sample.options.value_text("use_amp"), "true");
  EXPECT_EQ(sample.options.value_text("resume"), "null");
  EXPECT_EQ(sample.options.value_text("cfg"), "[1.0, 2.5]");
  EXPECT_EQ(sample.options.value_text("gpu_ids"), "[]");
  sample.values.output_dir = "7";
  EXPECT_EQ(sample.options.value_text("output_dir"), "\"7\"");
  sample.values.lr = 1e-5;
  EXPECT_EQ(sample.options.value_text("lr"), "1.0e-05");
  sample.values.lr = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sample.options.value_text("lr"), ".inf");
}

TEST(Options, AliasesAndKeysMayComeLater) {
  Sample sample;
  sample.options.add_alias("output-dir", "save_dir");
  sample.options.add_alias("output_dir", "save-dir");
  sample.options.set_key("save_dir", "checkpoint.save_dir");
  config::parse_command(sample.options, {"--save_dir", "x"});
  EXPECT_EQ(sample.values.output_dir, "x");
  config::apply_yaml_text(sample.options, "checkpoint: {save_dir: y}", "f");
  EXPECT_EQ(sample.values.output_dir, "y");
}

TEST(Options, RefreshedDefaultsAreShownAndStillDefaults) {
  Sample sample;
  sample.values.lr = 0.25;
  sample.options.refresh_defaults();
  EXPECT_EQ(sample.options.source("lr"), Source::kDefault);
  EXPECT_NE(config::help_text(sample.options, "").find("default: 0.25"),
            std::string::npos);
  EXPECT_NE(config::to_markdown(sample.options).find("`0.25`"),
            std::string::npos);
}

TEST(Options, ARefreshedDefaultReplacesTheShownText) {
  Sample sample;
  EXPECT_NE(config::to_markdown(sample.options).find("| all |"),
            std::string::npos);
  sample.options.refresh_defaults();
  EXPECT_NE(config::to_markdown(sample.options).find("| all |"),
            std::string::npos);
  sample.values.max_tokens = 4096;
  sample.options.refresh_defaults();
  EXPECT_EQ(config::to_markdown(sample.options).find("| all |"),
            std::string::npos);
  EXPECT_NE(config::to_markdown(sample.options).find("`4096`"),
            std::string::npos);
}

TEST(Options, AGroupMayComeLater) {
  Sample sample;
  sample.options.set_group("learning_rate", "Optimizer");
  EXPECT_NE(config::help_text(sample.options, "").find("\nOptimizer:\n  --lr "),
            std::string::npos);
}

TEST(Options, WhatTheUserGaveBecomesNoDefault) {
  Sample sample;
  config::parse_command(sample.options, {"--lr", "0.25"});
  sample.options.refresh_defaults();
  EXPECT_EQ(sample.options.source("lr"), Source::kFlag);
  EXPECT_EQ(config::help_text(sample.options, "").find("0.25"),
            std::string::npos);
}

TEST(Options, AValueEqualToTheDefaultCountsAsGiven) {
  Sample sample;
  config::parse_command(sample.options, {"--batch_size", "4"});
  EXPECT_TRUE(sample.options.was_given("batch_size"));
}

TEST(Options, AWordThatIsTakenIsABug) {
  int64_t number = 0;
  bool truth = false;
  for (const char* name :
       {"batch_size", "batch-size", "learning_rate", "config", "help",
        "print-config", "no_use_amp", "", "-x", "a.b", "a b", "a=b"}) {
    Sample sample;
    EXPECT_THROW(sample.options.add(name, number, ""), ConfigError) << name;
    EXPECT_THROW(sample.options.add_alias("cfg", name), ConfigError) << name;
  }
  Sample sample;
  sample.options.add("no_cache", number, "");
  EXPECT_THROW(sample.options.add("cache", truth, ""), ConfigError);
}

TEST(Options, AKeyThatIsTakenIsABug) {
  for (const char* key : {"data.batch_size", "data.batch-size", "lr", "data",
                          "lr.x", "data..x", ".", "data.max_tokens.x"}) {
    Sample sample;
    EXPECT_THROW(sample.options.set_key("cfg", key), ConfigError) << key;
  }
}

TEST(Options, ADefaultOutsideItsOwnLimitsIsABug) {
  int64_t number = 0;
  std::string text = "c";
  double fraction = 0;
  Options options;
  EXPECT_THROW(options.add("a", number, "", {.minimum = 1}), ConfigError);
  EXPECT_THROW(options.add("b", text, "", {.choices = {"x"}}), ConfigError);
  EXPECT_THROW(options.add("c", fraction, "", {.choices = {"0"}}), ConfigError);
}

}  // namespace
}  // namespace lockstep
