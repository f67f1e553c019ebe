#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/config/parse.h"
#include "lockstep/error.h"
#include "support/cpu_time.h"
#include "unit/config/sample_settings.h"

namespace lockstep {
namespace {

using Texts = std::vector<std::string>;

// The lines before the bad one must not apply.
void expect_yaml_error(const std::string& text, const Texts& essential) {
  Sample sample;
  expect_config_error(
      [&] { config::apply_yaml_text(sample.options, text, "f.yaml"); },
      essential);
  EXPECT_EQ(sample.values, SampleValues{}) << text;
  EXPECT_EQ(sample.options.source("lr"), Source::kDefault);
}

// Looking for the nearest key would take a hundred times as long as reading.
TEST(YamlErrors, AnEndlessKeyTakesAsLongAsAnEndlessValue) {
  const std::string endless(2'000'000, 'k');
  const auto seconds = [](const std::string& text) {
    return testing::cpu_seconds([&] {
      Sample sample;
      try {
        config::apply_yaml_text(sample.options, text, "f.yaml");
      } catch (const ConfigError& error) {
        EXPECT_LT(std::string_view(error.what()).size(), 500U);
      }
    });
  };
  const double value = seconds("output_dir: " + endless + "\n");
  EXPECT_LT(seconds("? " + endless + "\n: 1\n"), 20 * value);
  EXPECT_LT(seconds("data:\n  ? " + endless + "\n  : 1\n"), 20 * value);
}

TEST(YamlErrors, UnknownKeysNameThePlaceAndTheNearest) {
  expect_yaml_error(
      "lr: 0.5\nbatchsise: 4\n",
      {"f.yaml:2:1", "unknown key 'batchsise'", "did you mean batch_size?"});
  expect_yaml_error(
      "data:\n  batch_sise: 4\n",
      {"f.yaml:2:3", "'data.batch_sise'", "did you mean data.batch_size?"});
  expect_yaml_error("training: {learing_rate: 1}",
                    {"f.yaml:1:12", "'training.learing_rate'",
                     "did you mean learning_rate?"});
  expect_yaml_error("quux: 1", {"f.yaml:1:1", "'quux'", "--help"});
  expect_yaml_error("quux:", {"unknown key 'quux'"});
  expect_yaml_error("quux: {}", {"unknown key 'quux'"});
  expect_yaml_error("data: 3", {"f.yaml:1:1", "unknown key 'data'"});
  expect_yaml_error("~: 3", {"unknown key 'null'"});
}

TEST(YamlErrors, ANameInASectionWhereItDoesNotBelong) {
  expect_yaml_error("wandb: {resume: allow}",
                    {"f.yaml:1:9", "unknown key 'wandb.resume'",
                     "did you mean checkpoint.resume_from?"});
  expect_yaml_error("a: {b: {lr: 0.5}}",
                    {"unknown key 'a.b.lr'", "did you mean lr?"});
}

TEST(YamlErrors, WrongTypesNamePlaceKeyTextAndExpectation) {
  expect_yaml_error("lr: 0.5\nbatch_size:  abc\n",
                    {"f.yaml:2:14", "batch_size", "'abc'",
                     "expected an integer of at least 1"});
  expect_yaml_error("learning_rate: fast",
                    {"f.yaml:1:16", "learning_rate", "'fast'", "a number"});
  expect_yaml_error("batch_size: 2.5", {"'2.5'", "an integer"});
  expect_yaml_error("use_amp: 2", {"use_amp", "'2'", "true or false"});
  expect_yaml_error("min_lr: []",
                    {"min_lr", "got a list", "a number, or none"});
  expect_yaml_error("cfg: [1, x]", {"f.yaml:1:10", "cfg", "'x'",
                                    "a list of numbers, each of at least 0"});
  expect_yaml_error("cfg: [1, [2]]", {"cfg", "a list"});
  expect_yaml_error("cfg: [1, null]", {"cfg", "got null"});
  expect_yaml_error("cfg: {a: 1}", {"cfg", "got a map", "a list of numbers"});
  expect_yaml_error("lr: {a: 1}", {"lr", "got a map", "a number"});
  expect_yaml_error("lr: {}", {"lr", "got a map", "a number"});
  expect_yaml_error("lr:\nuse_amp: no",
                    {"f.yaml:1:1", "lr", "got null", "a number"});
  expect_yaml_error("output_dir: null", {"output_dir", "got null", "text"});
}

TEST(YamlErrors, QuotedTextIsNoNumber) {
  expect_yaml_error("batch_size: '8'",
                    {"f.yaml:1:13", "batch_size", "quoted text '8'",
                     "an integer", "remove the quotes"});
  expect_yaml_error("use_amp: \"no\"",
                    {"use_amp", "quoted text 'no'", "true or false"});
}

TEST(YamlErrors, RangesAndChoices) {
  expect_yaml_error("lr: 2", {"f.yaml:1:5", "lr", "'2'", "from 0 to 1"});
  expect_yaml_error(
      "masking_strategy: blok",
      {"masking_strategy", "'blok'", "random, block", "did you mean block?"});
}

TEST(YamlErrors, DuplicateKeys) {
  expect_yaml_error("lr: 0.5\nuse_amp: no\nlr: 0.6\n",
                    {"f.yaml:3:1", "'lr'", "twice", "line 1"});
  expect_yaml_error("data: {batch_size: 1}\ndata: {max_tokens: 2}\n",
                    {"f.yaml:2:1", "'data'", "twice"});
  expect_yaml_error("warmup_steps: 1\nwarmup-steps: 2\n", {"twice"});
}

TEST(YamlErrors, OneSettingUnderTwoNames) {
  expect_yaml_error(
      "lr: 0.5\nlearning_rate: 0.6\n",
      {"f.yaml:2:1", "'learning_rate'", "the same setting", "'lr'", "line 1"});
  expect_yaml_error("batch_size: 1\ndata: {batch_size: 2}\n",
                    {"f.yaml:2:8", "the same setting"});
}

TEST(YamlErrors, MalformedTextNamesThePlace) {
  expect_yaml_error("lr: 0.5\nuse_amp: [1, 2\n", {"f.yaml:", "malformed YAML"});
  expect_yaml_error("lr: 0.5\n\tuse_amp: no\n",
                    {"f.yaml:2:", "malformed YAML"});
  expect_yaml_error("lr: a: b", {"f.yaml:1:", "malformed YAML"});
  expect_yaml_error("lr: \"abc", {"f.yaml:", "malformed YAML"});
}

TEST(YamlErrors, TheTopIsAMap) {
  expect_yaml_error("- 1\n- 2\n", {"f.yaml:1:1", "key: value", "a list"});
  expect_yaml_error("hello", {"f.yaml:1:1", "key: value", "'hello'"});
}

TEST(YamlErrors, WhatASettingsFileNeedsNot) {
  expect_yaml_error("lr: &a 0.5\n", {"f.yaml:1:", "anchors"});
  expect_yaml_error("cfg: &a [*a]\n", {"f.yaml:1:", "anchors"});
  expect_yaml_error("lr: *a\n", {"f.yaml:1:5"});
  expect_yaml_error("lr: !!float 1\n", {"f.yaml:1:5", "tag", "float"});
  expect_yaml_error("? [a]\n: 1\n", {"f.yaml:1:3", "a key must be a word"});
  expect_yaml_error("lr: 0.5\n---\nlr: 0.6\n", {"f.yaml:", "second document"});
}

TEST(YamlErrors, BinaryAndOtherEncodings) {
  expect_yaml_error(std::string("lr: 0.5\nuse\0amp", 15),
                    {"f.yaml:2:4", "0x00", "not text", "UTF-8"});
  expect_yaml_error("lr: 0.5\noutput_dir: \xff\xfe\n", {"f.yaml", "not UTF-8"});
}

TEST(YamlErrors, DeepNestingIsAnErrorAndNoCrash) {
  expect_yaml_error("lr: " + std::string(100000, '['), {"f.yaml"});
  expect_yaml_error("lr: " + std::string(5000, '{'), {"f.yaml"});
}

class YamlFiles : public ::testing::Test {
 protected:
  YamlFiles()
      : folder_(
            base::make_unique_folder(::testing::TempDir(), "config_yaml_")) {}
  ~YamlFiles() override { std::filesystem::remove_all(folder_); }

  void expect_file_error(const std::string& name, const Texts& essential) {
    Sample sample;
    expect_config_error(
        [&] { config::apply_yaml_file(sample.options, folder_ / name); },
        essential);
    expect_config_error(
        [&] {
          config::parse_command(sample.options,
                                {"--config", (folder_ / name).string()});
        },
        essential);
    EXPECT_EQ(sample.values, SampleValues{});
  }

  std::filesystem::path folder_;
};

TEST_F(YamlFiles, AreRead) {
  base::write_file_atomically(folder_ / "a.yaml", "lr: 0.5\n");
  Sample sample;
  config::apply_yaml_file(sample.options, folder_ / "a.yaml");
  EXPECT_EQ(sample.values.lr, 0.5);
}

TEST_F(YamlFiles, ErrorsNameTheFile) {
  base::write_file_atomically(folder_ / "a.yaml", "lr: x\n");
  expect_file_error("a.yaml", {(folder_ / "a.yaml").string() + ":1:5"});
}

TEST_F(YamlFiles, AMissingOneIsNamed) {
  expect_file_error("gone.yaml", {"gone.yaml", "no such file"});
}

TEST_F(YamlFiles, AFolderIsRefused) {
  std::filesystem::create_directory(folder_ / "sub");
  expect_file_error("sub", {"sub", "is a folder"});
}

TEST_F(YamlFiles, APipeIsRefused) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  expect_file_error("pipe", {"pipe", "not a regular file"});
}

TEST_F(YamlFiles, AHugeOneIsRefused) {
  base::write_file_atomically(folder_ / "big.yaml", "");
  std::filesystem::resize_file(folder_ / "big.yaml", 10'000'001);
  expect_file_error("big.yaml", {"big.yaml", "10000001 bytes"});
}

TEST_F(YamlFiles, AnUnreadableOneIsAnError) {
  // Root reads every file; this one fails for root too.
  const std::filesystem::path path = "/proc/self/mem";
  Sample sample;
  expect_config_error([&] { config::apply_yaml_file(sample.options, path); },
                      {"/proc/self/mem", "cannot read"});
  std::filesystem::create_symlink("loop", folder_ / "loop");
  expect_file_error("loop", {"loop", "cannot read"});
}

}  // namespace
}  // namespace lockstep
