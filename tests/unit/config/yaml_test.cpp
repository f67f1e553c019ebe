#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/config/parse.h"
#include "unit/config/sample_settings.h"

namespace lockstep {
namespace {

using Texts = std::vector<std::string>;

SampleValues read(std::string_view text) {
  Sample sample;
  config::apply_yaml_text(sample.options, text, "f.yaml");
  return sample.values;
}

TEST(Yaml, EmptyTextsAreFine) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "{}",
                           "---\n...\n", "\xef\xbb\xbf"}) {
    EXPECT_EQ(read(text), SampleValues{}) << text;
  }
}

TEST(Yaml, KeysByFullPath) {
  EXPECT_EQ(read("data:\n  batch_size: 8\n").batch_size, 8);
  EXPECT_EQ(read("data.batch_size: 8").batch_size, 8);
  EXPECT_EQ(read("data: {batch-size: 8}").batch_size, 8);
  EXPECT_EQ(read("checkpoint: {resume_from: x}").resume, "x");
}

TEST(Yaml, PlainNamesAndAliasesAtTopLevel) {
  EXPECT_EQ(read("batch_size: 8").batch_size, 8);
  EXPECT_EQ(read("per_device_train_batch_size: 8").batch_size, 8);
  EXPECT_EQ(read("learning-rate: 0.5").lr, 0.5);
  EXPECT_EQ(read("resume: x").resume, "x");
}

TEST(Yaml, PlainNamesInsideSections) {
  EXPECT_EQ(read("training: {lr: 1e-3}").lr, 1e-3);
  EXPECT_EQ(read("training: {learning_rate: 1e-3}").lr, 1e-3);
  EXPECT_EQ(read("data: {per_device_train_batch_size: 8}").batch_size, 8);
  EXPECT_EQ(read("data: {lr: 0.5}").lr, 0.5);
}

TEST(Yaml, ASectionMayHaveTheNameOfASetting) {
  const SampleValues values = read("resume: {lr: 0.5}\nlayers: 18\n");
  EXPECT_EQ(values.lr, 0.5);
  EXPECT_EQ(values.layers, 18);
}

TEST(Yaml, AKnownSectionMayBeEmpty) {
  EXPECT_EQ(read("data:\nlr: 0.5\n").lr, 0.5);
  EXPECT_EQ(read("data: {}\n"), SampleValues{});
}

TEST(Yaml, Numbers) {
  EXPECT_EQ(read("lr: 1e-4").lr, 1e-4);
  EXPECT_EQ(read("lr: 1").lr, 1);
  EXPECT_EQ(read("P_mean: -.5").p_mean, -0.5);
  EXPECT_TRUE(std::isnan(read("P_mean: .nan").p_mean));
  EXPECT_EQ(read("P_mean: -.inf").p_mean,
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(read("batch_size: 2e5").batch_size, 200000);
}

TEST(Yaml, Bools) {
  for (const char* word : {"false", "False", "no", "off", "0"}) {
    EXPECT_FALSE(read(std::string("use_amp: ") + word).use_amp) << word;
  }
  EXPECT_EQ(read("compile: yes").compile, true);
}

TEST(Yaml, NullClearsAnOptional) {
  for (const char* word : {"null", "~", "", "none", "None", "NULL"}) {
    const std::string line = std::string("min_lr: ") + word;
    EXPECT_EQ(read(line).min_lr, std::nullopt) << line;
  }
  EXPECT_EQ(read("resume: null").resume, std::nullopt);
  EXPECT_EQ(read("resume: \"null\"").resume, "null");
  EXPECT_EQ(read("resume: 'none'").resume, "none");
  EXPECT_EQ(read("resume: ''").resume, "");
  EXPECT_EQ(read("output_dir: none").output_dir, "none");
}

TEST(Yaml, PlainNumbersAndBoolsAreTextsWhereTextsAreExpected) {
  EXPECT_EQ(read("output_dir: 2024").output_dir, "2024");
  EXPECT_EQ(read("output_dir: true").output_dir, "true");
  EXPECT_EQ(read("output_dir: 'a b'").output_dir, "a b");
  EXPECT_EQ(read("output_dir: |\n  a\n  b\n").output_dir, "a\nb\n");
}

TEST(Yaml, Lists) {
  EXPECT_EQ(read("cfg: [1, 2.5, 5e0]").cfg, (std::vector<double>{1, 2.5, 5}));
  EXPECT_EQ(read("cfg:\n- 1\n- 2\n").cfg, (std::vector<double>{1, 2}));
  EXPECT_EQ(read("tags: [a, 'b,c', 3]").tags, (Texts{"a", "b,c", "3"}));
  EXPECT_EQ(read("cfg: 3").cfg, std::vector<double>{3});
  EXPECT_TRUE(read("cfg: []").cfg.empty());
  EXPECT_TRUE(read("tags: null").tags.empty());
}

TEST(Yaml, LaterTextsGoOverEarlierOnes) {
  Sample sample;
  config::apply_yaml_text(sample.options, "lr: 0.1\ncfg: [1]", "a");
  config::apply_yaml_text(sample.options, "lr: 0.2", "b");
  EXPECT_EQ(sample.values.lr, 0.2);
  EXPECT_EQ(sample.values.cfg, std::vector<double>{1});
  EXPECT_EQ(sample.options.source("lr"), Source::kFile);
}

}  // namespace
}  // namespace lockstep
