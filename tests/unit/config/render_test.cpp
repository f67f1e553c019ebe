#include "lockstep/config/render.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/strings.h"
#include "lockstep/config/parse.h"
#include "unit/config/sample_settings.h"

namespace lockstep {
namespace {

TEST(ToYaml, WritesEverySettingWithItsValueInSections) {
  Sample sample;
  sample.values.resume = "last.pt";
  EXPECT_EQ(config::to_yaml(sample.options),
            "data:\n"
            "  batch_size: 4\n"
            "  max_tokens: null\n"
            "lr: 0.0001\n"
            "P_mean: -0.8\n"
            "warmup_epochs: 5\n"
            "warmup_steps: 0\n"
            "min_lr: 0.5\n"
            "cfg: [1.0, 2.5]\n"
            "gpu_ids: []\n"
            "layers: 50\n"
            "use_amp: true\n"
            "compile: null\n"
            "masking_strategy: random\n"
            "output_dir: ./output\n"
            "checkpoint:\n"
            "  resume_from: last.pt\n"
            "tags: [a]\n");
}

SampleValues round_trip(const SampleValues& values) {
  Sample written;
  written.values = values;
  Sample read;
  config::apply_yaml_text(read.options, config::to_yaml(written.options),
                          "round");
  for (const Setting& setting : read.options.settings()) {
    EXPECT_EQ(setting.source, Source::kFile) << setting.name;
  }
  return read.values;
}

void expect_round_trip(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    SampleValues values;
    values.output_dir = text;
    values.resume = text;
    values.tags = {text, "b", text};
    EXPECT_EQ(round_trip(values), values) << ::testing::PrintToString(text);
  }
  SampleValues all;
  all.tags = texts;
  EXPECT_EQ(round_trip(all), all);
}

TEST(ToYaml, TextsThatLookLikeOtherThingsComeBack) {
  expect_round_trip(base::split(
      "1,-1,1e-4,1_000,0x1F,0o7,.5,+1,12:30:45,2024-01-01,true,False,yes,NO,"
      "on,off,y,null,Null,~,none,None,.inf,inf,nan,.nan,infinity,<<,=",
      ','));
}

TEST(ToYaml, TextsWithTheSignsOfYamlComeBack) {
  expect_round_trip(base::split(
      "a: b;a #b;#a;- a;-;--;---;...;? a;[a;{a;a];a};a, b;&a;*a;!a;!!str a;|;"
      ">;%a;@a;`a;';\";it's;say "
      "\"x\";\\;\\n;C:\\x;key:;a:b;http://x/y?z=1&w=2#f",
      ';'));
  expect_round_trip({"./a/b.pt", "../x", "~/x", "/a b/c", "JiT-B/4"});
}

TEST(ToYaml, TextsOfUnusualCharactersComeBack) {
  expect_round_trip({"", " ", "a ", " a", "a\nb", "a\n", "\n", "\ta", "a\tb"});
  expect_round_trip({"\r\n", std::string("\0", 1), std::string("a\0b", 3)});
  expect_round_trip({"\x01\x1b\x7f", "\u00e9", "\u4e2d\u6587", "\U0001f600"});
  expect_round_trip({"\u0085", "\u00a0", "\u2028", "\u2029", "\ufeff"});
  expect_round_trip({"\ufffe\uffff", std::string(5000, 'x')});
  expect_round_trip({std::string(5000, ' ')});
}

TEST(ToYaml, QuotesOnlyWhereNeeded) {
  Sample sample;
  sample.values.tags = {"JiT-B/4", "a b", "./x.pt", "yes", "12", "a: b", "x,y"};
  EXPECT_EQ(sample.options.value_text("tags"),
            "[JiT-B/4, a b, ./x.pt, \"yes\", \"12\", \"a: b\", \"x,y\"]");
}

TEST(ToYaml, AwkwardNumbersComeBackExactly) {
  const double largest = std::numeric_limits<double>::max();
  const std::vector<double> numbers = {
      0.0,
      1.0,
      0.1,
      1.0 / 3,
      1e-4,
      1e-5,
      5e-6,
      1e16,
      1e17,
      123456789012345678.0,
      largest,
      std::numeric_limits<double>::min(),
      std::numeric_limits<double>::denorm_min(),
      std::nextafter(1.0, 2.0)};
  SampleValues values;
  values.cfg = numbers;
  values.min_lr = -largest;
  values.p_mean = -std::numeric_limits<double>::infinity();
  values.gpu_ids = {INT64_MIN, -1, 0, INT64_MAX};
  values.compile = false;
  values.max_tokens = 0;
  values.tags = {};
  EXPECT_EQ(round_trip(values), values);
  values.p_mean = -0.0;
  EXPECT_TRUE(std::signbit(round_trip(values).p_mean));
  values.p_mean = std::nan("");
  EXPECT_TRUE(std::isnan(round_trip(values).p_mean));
}

TEST(ToYaml, KeysThatLookLikeOtherThingsComeBack) {
  int64_t number = 1;
  int64_t other = 2;
  Options options;
  options.add("on", number, "", {.key = "null.1"});
  options.add("1e5", other, "", {.key = "1-2"});
  const std::string text = config::to_yaml(options);
  number = other = 0;
  config::apply_yaml_text(options, text, "f");
  EXPECT_EQ(number, 1);
  EXPECT_EQ(other, 2);
}

TEST(ToYaml, SectionsInEitherSpellingAreOne) {
  int64_t a = 1;
  int64_t b = 2;
  Options options;
  options.add("a", a, "", {.key = "my_part.a"});
  options.add("b", b, "", {.key = "my-part.b"});
  EXPECT_EQ(config::to_yaml(options), "my_part:\n  a: 1\n  b: 2\n");
}

TEST(HelpText, ShowsEverySettingOnceByGroup) {
  const Sample sample;
  const std::string text = config::help_text(sample.options, "train [flags]");
  EXPECT_TRUE(text.starts_with("usage: train [flags]\n")) << text;
  for (const Setting& setting : sample.options.settings()) {
    const std::string flag = setting.binding.kind == ScalarKind::kBool
                                 ? "\n  --[no_]" + setting.name
                                 : "\n  --" + setting.name + " ";
    const auto at = text.find(flag);
    EXPECT_NE(at, std::string::npos) << setting.name;
    EXPECT_EQ(text.find(flag, at + 1), std::string::npos) << setting.name;
  }
  for (const char* flag : {"--config FILE", "--print_config", "-h, --help"}) {
    EXPECT_NE(text.find(flag), std::string::npos) << flag;
  }
  EXPECT_LT(text.find("\nSettings:\n"), text.find("\n  --lr NUMBER"));
  EXPECT_LT(text.find("\nData:\n"), text.find("\n  --batch_size INT"));
}

TEST(HelpText, NamesDefaultChoicesLimitsAndAliases) {
  const Sample sample;
  const std::string text = base::replace_all(
      config::help_text(sample.options, ""), "\n" + std::string(34, ' '), " ");
  for (const char* part :
       {"samples per GPU (default: 4; at least 1; also "
        "--per_device_train_batch_size)",
        "what is masked (default: random; one of random, block)",
        "tokens per text (default: all)",
        "checkpoint to go on from (default: none)",
        "guidance scales (default: [1.0, 2.5]; at least 0)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(HelpText, FitsIn100ColumnsAndIsAligned) {
  Sample sample;
  std::string value;
  std::string words;
  for (size_t i = 0; i < 500; ++i) words += std::string(1 + i % 13, 'x') + " ";
  sample.options.add("a_setting_with_a_name_that_fills_its_column", value,
                     words);
  for (const std::string& line :
       base::split(config::help_text(sample.options, "train"), '\n')) {
    EXPECT_LE(line.size(), 100u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
    if (line.starts_with("   ")) {
      EXPECT_EQ(line.find_first_not_of(' '), 34u) << line;
    }
  }
}

TEST(ToMarkdown, HasATablePerGroup) {
  const Sample sample;
  const std::string text = config::to_markdown(sample.options);
  EXPECT_TRUE(text.starts_with("### Settings\n\n| flag |")) << text;
  EXPECT_NE(text.find("\n\n### Data\n\n| flag |"), std::string::npos);
  EXPECT_NE(text.find("| `--batch_size`, `--per_device_train_batch_size` | "
                      "`data.batch_size` | an integer of at least 1 | `4` | "
                      "samples per GPU |\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| `--[no_]use_amp` | `use_amp` |"), std::string::npos);
  EXPECT_NE(text.find("| all | tokens per text |"), std::string::npos);
}

TEST(ToMarkdown, ABarDoesNotEndTheCell) {
  std::string value = "a|b";
  Options options;
  options.add("x", value, "one|two\nthree");
  EXPECT_NE(
      config::to_markdown(options).find("`\"a\\|b\"` | one\\|two three |\n"),
      std::string::npos);
}

}  // namespace
}  // namespace lockstep
