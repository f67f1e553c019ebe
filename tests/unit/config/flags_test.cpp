#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/config/one_page_command.h"
#include "lockstep/config/parse.h"
#include "lockstep/config/render.h"
#include "unit/config/sample_settings.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

SampleValues parsed(const Words& words) {
  Sample sample;
  config::parse_command(sample.options, words);
  return sample.values;
}

// Also: nothing has changed.
void expect_flag_error(const Words& words, const Words& essential) {
  Sample sample;
  expect_config_error([&] { config::parse_command(sample.options, words); },
                      essential);
  EXPECT_EQ(sample.values, SampleValues{});
  EXPECT_EQ(sample.options.source("output_dir"), Source::kDefault);
}

TEST(Flags, NoArgumentsLeaveTheDefaults) {
  EXPECT_EQ(parsed({}), SampleValues{});
}

TEST(Flags, ValueAsNextWordOrAfterEquals) {
  EXPECT_EQ(parsed({"--batch_size", "8"}).batch_size, 8);
  EXPECT_EQ(parsed({"--batch_size=8"}).batch_size, 8);
  EXPECT_EQ(parsed({"--output_dir=a=b"}).output_dir, "a=b");
  EXPECT_EQ(parsed({"--output_dir="}).output_dir, "");
  EXPECT_EQ(parsed({"--output_dir", ""}).output_dir, "");
  EXPECT_EQ(parsed({"--output_dir=-x"}).output_dir, "-x");
  EXPECT_EQ(parsed({"--output_dir", "-"}).output_dir, "-");
}

TEST(Flags, DashEqualsUnderscore) {
  EXPECT_EQ(parsed({"--batch-size", "8"}).batch_size, 8);
  EXPECT_EQ(parsed({"--per-device_train-batch_size=9"}).batch_size, 9);
  EXPECT_EQ(parsed({"--P-mean=2"}).p_mean, 2);
}

TEST(Flags, AliasesMeanTheSame) {
  EXPECT_EQ(parsed({"--learning_rate", "0.5"}).lr, 0.5);
}

TEST(Flags, UniqueBeginningsAreAccepted) {
  EXPECT_EQ(parsed({"--warmup_e", "7"}).warmup_epochs, 7);
  EXPECT_EQ(parsed({"--mask=block"}).strategy, "block");
  EXPECT_FALSE(parsed({"--no-use"}).use_amp);
}

TEST(Flags, SeveralSpellingsOfOneSettingAreNotAmbiguous) {
  Sample sample;
  sample.options.add_alias("output_dir", "output_folder");
  config::parse_command(sample.options, {"--output", "x"});
  EXPECT_EQ(sample.values.output_dir, "x");
}

TEST(Flags, AnExactNameWinsOverLongerOnes) {
  int64_t steps = 0;
  int64_t steps_per_epoch = 0;
  Options options;
  options.add("steps", steps, "");
  options.add("steps_per_epoch", steps_per_epoch, "");
  config::parse_command(options, {"--steps", "3"});
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(steps_per_epoch, 0);
}

TEST(Flags, AmbiguousBeginningsListTheCandidates) {
  expect_flag_error({"--warmup", "3"}, {"ambiguous", "--warmup",
                                        "--warmup_epochs", "--warmup_steps"});
}

TEST(Flags, NegativeNumbersAreValues) {
  EXPECT_EQ(parsed({"--P_mean", "-1.5"}).p_mean, -1.5);
  EXPECT_EQ(parsed({"--P_mean", "-.5e1"}).p_mean, -5);
  EXPECT_EQ(parsed({"--gpu_ids", "-1", "-2"}).gpu_ids,
            (std::vector<int64_t>{-1, -2}));
  EXPECT_TRUE(std::isinf(parsed({"--P_mean", "-inf"}).p_mean));
}

TEST(Flags, NumbersAsPythonWritesThem) {
  EXPECT_EQ(parsed({"--lr", "1e-4"}).lr, 1e-4);
  EXPECT_EQ(parsed({"--lr", "1E-4"}).lr, 1e-4);
  EXPECT_EQ(parsed({"--lr", "1"}).lr, 1);
  EXPECT_EQ(parsed({"--lr", "+.5"}).lr, 0.5);
  EXPECT_EQ(parsed({"--batch_size", "2e5"}).batch_size, 200000);
  EXPECT_EQ(parsed({"--batch_size", "2.5e1"}).batch_size, 25);
  EXPECT_EQ(parsed({"--batch_size", "9223372036854775807"}).batch_size,
            INT64_MAX);
}

TEST(Flags, WhatIsNoIntegerIsRefused) {
  for (const char* text : {"abc", "1_000", "2.5", "8.0", "1.5e0", "1e30",
                           "9223372036854775808", "0x10", "", " 8", "inf"}) {
    expect_flag_error(
        {"--output_dir=x", std::string("--batch_size=") + text},
        {"--batch_size", std::string("'") + text + "'", "an integer"});
  }
}

TEST(Flags, WhatIsNoNumberIsRefused) {
  for (const char* text :
       {"abc", "1_000.0", "1e", "1e999", "nan(1)", "", "1.2.3", "--", "+-1"}) {
    expect_flag_error({"--output_dir=x", std::string("--P_mean=") + text},
                      {"--P_mean", std::string("'") + text + "'", "a number"});
  }
}

TEST(Flags, OutOfRangeSaysTheRange) {
  expect_flag_error({"--batch_size", "0"},
                    {"--batch_size", "'0'", "an integer of at least 1"});
  expect_flag_error({"--learning_rate", "1.5"},
                    {"--learning_rate", "'1.5'", "a number from 0 to 1"});
  expect_flag_error({"--lr", "nan"}, {"--lr", "'nan'", "from 0 to 1"});
  expect_flag_error({"--cfg", "nan"}, {"--cfg", "'nan'", "each of at least 0"});
  expect_flag_error({"--cfg", "1", "-2"},
                    {"--cfg", "'-2'", "a list of numbers, each of at least 0"});
}

TEST(Flags, ChoicesAreCheckedAndSuggested) {
  EXPECT_EQ(parsed({"--masking_strategy", "block"}).strategy, "block");
  EXPECT_EQ(parsed({"--layers", "101"}).layers, 101);
  expect_flag_error({"--masking_strategy", "blok"},
                    {"--masking_strategy", "'blok'", "one of random, block",
                     "did you mean block?"});
  expect_flag_error({"--masking_strategy", ""}, {"''", "one of random, block"});
  expect_flag_error({"--layers", "34"},
                    {"--layers", "'34'", "one of 18, 50, 101"});
}

TEST(Flags, ListsOfWordsAndCommas) {
  const std::vector<double> expected = {1.0, 2.5, 5.0};
  EXPECT_EQ(parsed({"--cfg", "1.0", "2.5", "5.0"}).cfg, expected);
  EXPECT_EQ(parsed({"--cfg", "1.0,2.5,5.0"}).cfg, expected);
  EXPECT_EQ(parsed({"--cfg=1.0,2.5,5.0"}).cfg, expected);
  EXPECT_EQ(parsed({"--cfg", "1.0,2.5", "5.0"}).cfg, expected);
  const SampleValues values =
      parsed({"--tags", "x", "y,z", "--gpu_ids", "0", "3"});
  EXPECT_EQ(values.tags, (Words{"x", "y", "z"}));
  EXPECT_EQ(values.gpu_ids, (std::vector<int64_t>{0, 3}));
}

TEST(Flags, AnEmptyValueEmptiesAList) {
  EXPECT_TRUE(parsed({"--cfg="}).cfg.empty());
  EXPECT_TRUE(parsed({"--tags", ""}).tags.empty());
}

TEST(Flags, BadItemsOfListsAreRefused) {
  expect_flag_error({"--cfg", "1.0", "x"},
                    {"--cfg", "'x'", "a list of numbers"});
  expect_flag_error({"--cfg", "1.0,"}, {"--cfg", "''", "a list of numbers"});
  expect_flag_error({"--tags", "a,,b"}, {"--tags", "''", "a list of texts"});
}

TEST(Flags, BoolsAloneNegatedAndWithValue) {
  EXPECT_TRUE(parsed({"--no_use_amp", "--use_amp"}).use_amp);
  EXPECT_FALSE(parsed({"--no_use_amp"}).use_amp);
  EXPECT_FALSE(parsed({"--no-use-amp"}).use_amp);
  for (const char* word : {"false", "False", "0", "no", "off"}) {
    EXPECT_FALSE(parsed({"--use_amp", word}).use_amp) << word;
    EXPECT_FALSE(parsed({std::string("--use_amp=") + word}).use_amp) << word;
  }
  for (const char* word : {"true", "True", "1", "yes", "on"}) {
    EXPECT_TRUE(parsed({"--no_use_amp", "--use_amp", word}).use_amp) << word;
  }
  expect_flag_error({"--use_amp=maybe"},
                    {"--use_amp", "'maybe'", "true or false"});
  expect_flag_error({"--no_use_amp=true"}, {"--no_use_amp", "takes no value"});
}

TEST(Flags, ABoolLeavesOtherWordsAlone) {
  Sample sample;
  const config::ParsedCommand command = config::parse_command(
      sample.options, {"--use_amp", "train", "--no_use_amp", "1"});
  EXPECT_EQ(command.positionals, (Words{"train", "1"}));
  EXPECT_FALSE(sample.values.use_amp);
}

TEST(Flags, NoneClearsAnOptional) {
  for (const char* word : {"none", "None", "null"}) {
    EXPECT_EQ(parsed({"--min_lr", word}).min_lr, std::nullopt);
    EXPECT_EQ(parsed({"--resume", "x", "--resume", word}).resume, std::nullopt);
    EXPECT_EQ(parsed({"--compile", "--compile", word}).compile, std::nullopt);
  }
  EXPECT_EQ(parsed({"--resume", "x.pt"}).resume, "x.pt");
  EXPECT_EQ(parsed({"--max_tokens", "7"}).max_tokens, 7);
  EXPECT_EQ(parsed({"--compile"}).compile, true);
  EXPECT_EQ(parsed({"--no_compile"}).compile, false);
  EXPECT_EQ(parsed({"--output_dir", "none"}).output_dir, "none");
  expect_flag_error({"--lr", "none"}, {"--lr", "'none'", "a number"});
  expect_flag_error({"--min_lr", "x"},
                    {"--min_lr", "'x'", "a number, or none"});
}

TEST(Flags, TheLastOneWins) {
  EXPECT_EQ(parsed({"--lr", "0.1", "--learning_rate", "0.2"}).lr, 0.2);
  EXPECT_EQ(parsed({"--cfg", "1", "--cfg", "2", "3"}).cfg,
            (std::vector<double>{2, 3}));
}

TEST(Flags, UnknownOnesNameTheNearest) {
  expect_flag_error(
      {"--output_dir=x", "--batchsise", "4"},
      {"unknown flag --batchsise;", "did you mean --batch_size?"});
  expect_flag_error({"--batchsise=4"}, {"unknown flag --batchsise;"});
  expect_flag_error({"--quux"}, {"unknown flag --quux", "--help"});
  expect_flag_error({"--no_lr"}, {"unknown flag --no_lr"});
  expect_flag_error({"-b", "4"}, {"unknown flag -b", "two dashes"});
  expect_flag_error({"-batch_size", "4"},
                    {"unknown flag -batch_size", "did you mean --batch_size?"});
  expect_flag_error({"--=4"}, {"unknown flag --;"});
  expect_flag_error({"--Batch_size=4"}, {"did you mean --batch_size?"});
}

TEST(Flags, UnknownOnesMayBeTheLaunchers) {
  Sample sample;
  expect_config_error(
      [&] {
        config::parse_command(sample.options, {"--nprocs", "2"},
                              {.launch_flags = {"log-dir", "nproc"}});
      },
      {"unknown flag --nprocs; did you mean --nproc?"});
  expect_config_error(
      [&] {
        config::parse_command(sample.options, {"--log_dir", "x"},
                              {.launch_flags = {"log-dir", "nproc"}});
      },
      {"--log_dir is an option of the launcher: lockstep train RECIPE "
       "--log-dir ...; processes that torchrun, srun or mpirun started do not "
       "have it"});
}

TEST(OnePageCommand, QuestionsAreAnsweredInPlaceOfRunning) {
  Sample sample;
  const auto answer = [&](const Words& words) {
    return config::parse_one_page_command(sample.options, words,
                                          "prepare it [flags]");
  };
  EXPECT_TRUE(answer({"--help"})->starts_with("usage: prepare it [flags]\n"));
  // Before to_yaml(): which argument is computed first is open.
  const auto printed = answer({"--lr", "0.5", "--print_config"});
  EXPECT_EQ(printed, config::to_yaml(sample.options));
  EXPECT_EQ(answer({"--lr", "0.25"}), std::nullopt);
  EXPECT_EQ(sample.values.lr, 0.25);
  expect_config_error([&] { answer({"word"}); },
                      {"'word' belongs to no flag; usage: prepare it [flags]"});
}

TEST(Flags, AMissingValueIsAnError) {
  expect_flag_error({"--lr"}, {"--lr needs a value", "a number from 0 to 1"});
  expect_flag_error({"--cfg", "--lr", "1"},
                    {"--cfg needs a value", "a list of numbers", "--lr"});
  expect_flag_error({"--output_dir", "-x"},
                    {"--output_dir needs a value", "-x", "--output_dir=..."});
  expect_flag_error({"--lr", "--"}, {"--lr needs a value"});
  expect_flag_error({"--config"}, {"--config needs a value", "YAML file"});
}

TEST(Flags, WordsWithoutDashesArePositionals) {
  Sample sample;
  const config::ParsedCommand command = config::parse_command(
      sample.options, {"jit", "--lr", "0.5", "more", "-3", "--", "--lr", "x"});
  EXPECT_EQ(command.positionals, (Words{"jit", "more", "-3", "--lr", "x"}));
  EXPECT_EQ(sample.values.lr, 0.5);
  EXPECT_FALSE(command.help);
  EXPECT_FALSE(command.print_config);
}

TEST(Flags, HelpWinsOverEverythingAndAppliesNothing) {
  for (const char* word : {"--help", "-h"}) {
    Sample sample;
    EXPECT_TRUE(
        config::parse_command(sample.options, {"--lr", "0.5", "--bad", word})
            .help);
    EXPECT_EQ(sample.values, SampleValues{});
  }
  Sample sample;
  EXPECT_TRUE(config::parse_command(sample.options, {"--hel"}).help);
  EXPECT_FALSE(config::parse_command(sample.options, {"--", "--help"}).help);
}

TEST(Flags, PrintConfigIsReported) {
  Sample sample;
  EXPECT_TRUE(
      config::parse_command(sample.options, {"--print-config", "--lr=0.5"})
          .print_config);
  EXPECT_EQ(sample.values.lr, 0.5);
}

TEST(Flags, TextThatIsNotUtf8IsRefused) {
  expect_flag_error({"--output_dir=\xff\xfe"}, {"--output_dir", "not UTF-8"});
}

class FlagsAndFiles : public ::testing::Test {
 protected:
  FlagsAndFiles()
      : folder_(base::make_unique_folder(testing::TempDir(), "config_flags_")) {
  }
  ~FlagsAndFiles() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    base::write_file_atomically(folder_ / name, text);
    return (folder_ / name).string();
  }

  std::filesystem::path folder_;
};

TEST_F(FlagsAndFiles, FilesInOrderAndFlagsOverThem) {
  const std::string first = write("a.yaml", "lr: 0.1\nuse_amp: no\ncfg: [7]");
  const std::string second = write("b.yaml", "lr: 0.2\nwarmup_steps: 3\n");
  Sample sample;
  config::parse_command(sample.options, {"--warmup_steps", "9", "--config",
                                         first, "--config=" + second});
  EXPECT_EQ(sample.values.lr, 0.2);
  EXPECT_FALSE(sample.values.use_amp);
  EXPECT_EQ(sample.values.cfg, std::vector<double>{7});
  EXPECT_EQ(sample.values.warmup_steps, 9);
  EXPECT_EQ(sample.options.source("learning-rate"), Source::kFile);
  EXPECT_EQ(sample.options.source("warmup_steps"), Source::kFlag);
  EXPECT_EQ(sample.options.source("batch_size"), Source::kDefault);
  EXPECT_TRUE(sample.options.was_given("lr"));
  EXPECT_FALSE(sample.options.was_given("batch_size"));
}

TEST_F(FlagsAndFiles, NothingAppliesWhenEitherFails) {
  const std::string good = write("good.yaml", "lr: 0.1\noutput_dir: x\n");
  const std::string bad = write("bad.yaml", "lr: 0.2\nbatch_size: x\n");
  expect_flag_error({"--config", good, "--config", bad, "--use_amp=false"},
                    {"bad.yaml:2:13", "batch_size", "'x'"});
  expect_flag_error({"--config", good, "--cfg", "x"}, {"--cfg"});
}

// A shipped file is found from any folder, and no path leaves the folder of
// shipped files.
TEST_F(FlagsAndFiles, AFileMayBeShippedWithThePrograms) {
  std::filesystem::create_directories(folder_ / "share" / "atlas");
  write("share/atlas/train.yaml", "warmup_steps: 7\n");
  const std::string outside = write("outside.yaml", "warmup_steps: 9\n");
  Sample sample;
  const auto parse = [&](const std::string& file) {
    return config::parse_command(sample.options, {"--config", file},
                                 {.shipped = folder_ / "share"});
  };
  const auto shipped = parse("atlas/train.yaml").shipped_files;
  ASSERT_EQ(shipped.size(), 1U);
  EXPECT_EQ(shipped[0], folder_ / "share" / "atlas" / "train.yaml");
  EXPECT_EQ(sample.values.warmup_steps, 7);
  EXPECT_THROW(parse("../outside.yaml"), ConfigError);
  EXPECT_THROW(parse("atlas/other.yaml"), ConfigError);
  EXPECT_TRUE(parse(outside).shipped_files.empty());
  EXPECT_EQ(sample.values.warmup_steps, 9);
}

}  // namespace
}  // namespace lockstep
