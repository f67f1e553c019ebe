#include <gtest/gtest.h>

#include <random>

#include "lockstep/config/parse.h"
#include "lockstep/config/render.h"
#include "unit/config/sample_settings.h"

namespace lockstep {
namespace {

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (size_t count = 1 + below(6); count > 0; --count) mutate_once(text);
    return text;
  }

 private:
  size_t below(size_t limit) { return random_() % limit; }

  void mutate_once(std::string& text) {
    const size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0: text.erase(at, 1 + below(4)); break;
      case 1: text.insert(at, 1, static_cast<char>(below(256))); break;
      case 2: text.insert(at, text.substr(below(text.size() + 1), 20)); break;
      case 3: text.resize(at); break;
      default: text.insert(at, piece());
    }
  }

  std::string piece() {
    const std::vector<std::string> pieces = {"&a ",      "*a",
                                             "!!str ",   "? ",
                                             "- ",       ": ",
                                             "{",        "}",
                                             "[",        "]",
                                             "\n",       "\n  ",
                                             "|",        ">",
                                             "#",        "\"",
                                             "'",        "%YAML 9.9",
                                             "---",      "...",
                                             "<<: ",     "\t",
                                             "@",        "`",
                                             "\\x",      "~",
                                             "lr",       "\xef\xbb\xbf",
                                             "\xff\xfe", "9999999999999999999",
                                             "1e999"};
    return pieces[below(pieces.size())];
  }

  std::mt19937 random_;
};

TEST(YamlFuzz, MutatedTextsApplyWholeOrThrowConfigErrorAndChangeNothing) {
  const std::vector<std::string> seeds = {
      config::to_yaml(Sample().options),
      "training:\n  lr: 1e-3\n  use_amp: no\ncfg: [1, 2]\ntags:\n- a\n- 'b'\n",
      "{data: {batch_size: 8}, \"lr\": 0.5, output_dir: |\n  x\n}\n"};
  Mutator mutator(7);
  Sample sample;
  int num_refused = 0;
  for (int round = 0; round < 6000; ++round) {
    const std::string text =
        mutator.mutate(seeds[static_cast<size_t>(round) % seeds.size()]);
    sample.values = {};
    try {
      config::apply_yaml_text(sample.options, text, "fuzz.yaml");
    } catch (const ConfigError&) {
      ++num_refused;
      ASSERT_EQ(sample.values, SampleValues{}) << text;
    }
  }
  EXPECT_GT(num_refused, 1000);
  EXPECT_LT(num_refused, 5900);
}

TEST(FlagsFuzz, MixedWordsApplyWholeOrThrowConfigErrorAndChangeNothing) {
  const std::vector<std::string> words = {"--lr",
                                          "0.5",
                                          "--cfg",
                                          "1,2",
                                          "-3",
                                          "--no_use_amp",
                                          "--tags",
                                          "--compile",
                                          "none",
                                          "--",
                                          "--=",
                                          "-x",
                                          "",
                                          "--gpu_ids",
                                          "--warm",
                                          "true",
                                          "--lr==",
                                          "--config=/gone",
                                          "--min_lr",
                                          "word",
                                          "---",
                                          "-",
                                          "--batch_size=4"};
  std::mt19937 random(7);
  Sample sample;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> arguments(random() % 6);
    for (std::string& argument : arguments) {
      argument = words[random() % words.size()];
    }
    sample.values = {};
    try {
      config::parse_command(sample.options, arguments);
    } catch (const ConfigError&) {
      ASSERT_EQ(sample.values, SampleValues{})
          << ::testing::PrintToString(arguments);
    }
  }
}

}  // namespace
}  // namespace lockstep
