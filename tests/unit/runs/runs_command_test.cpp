#include "lockstep/runs/runs_command.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int64_t kNow = 1'800'000'000;

class RunsCommandTest : public ::testing::Test {
 protected:
  RunsCommandTest() {
    add("a", "lr: 0.003\nwandb:\n  enabled: false\ntags: [x, y]\n",
        "{\"step\":5,\"train/loss\":0.5}\n{\"step\":10,\"train/loss\":0.25}\n"
        "{\"step\":10,\"val/accuracy\":0.75}\n");
    add("b", "lr: 0.01\nwandb:\n  enabled: true\ntags: [x, y]\nextra: 1\n",
        "{\"step\":5,\"train/loss\":0.5}\n{\"step\":10,\"train/loss\":0.125}\n"
        "{\"step\":15,\"train/loss\":0.1}\n");
  }

  void add(const std::string& name, const std::string& settings,
           const std::string& metrics) const {
    fs::create_directories(folder_.path() / name);
    folder_.write(name + "/config.yaml", "# recipe: tiny\n" + settings);
    folder_.write(name + "/metrics.jsonl", metrics);
    folder_.write(
        name + "/run.json",
        R"({"recipe":"tiny","processes":2,"total_steps":10,"started":1799990000,)"
        R"("best_metric":"val/accuracy","better":"higher","end":)"
        R"({"time":1799999990,"exit_code":1,"last_line":"IoError: )" +
            name + "\"}}");
  }

  std::string output(Words words) const {
    for (std::string& word : words) {
      if (word == "@") word = folder_.path().string();
      if (word.starts_with("@/")) {
        word = (folder_.path() / word.substr(2)).string();
      }
    }
    return runs::run_runs_command(runs::parse_runs_options(words), {}, kNow);
  }

  std::string refusal(const Words& words) const {
    try {
      output(words);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  const testing::TempDir folder_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(RunsCommandTest, ListsRunsAsATable) {
  const std::string text = output({"@"});
  EXPECT_TRUE(text.starts_with("RUN  RECIPE  STATE    STEP"));
  EXPECT_TRUE(has(text, "\na    tiny    failed  10/10  0.25  0.75 accuracy"))
      << text;
  EXPECT_TRUE(has(text, "\nb    tiny    failed  15/10   0.1              -"))
      << text;
}

TEST_F(RunsCommandTest, ListsRunsAsJson) {
  const std::string text = output({"@", "--json"});
  EXPECT_TRUE(has(text, R"("id":"a","recipe":"tiny","state":"failed")"));
  EXPECT_TRUE(has(text, R"("reason":"IoError: a","step":10,"total_steps":10)"));
  EXPECT_TRUE(has(text, R"("best_metric":"val/accuracy","best":0.75)"));
  fs::create_directory(folder_.path() / "empty");
  EXPECT_EQ(output({"@/empty", "--json"}), "[]\n");
}

TEST_F(RunsCommandTest, ShowsARunWithItsCurve) {
  const std::string text = output({"show", "@/a"});
  for (const char* part :
       {"state       failed\n", "ended       IoError: a\n",
        "best        0.75 accuracy at step 10\n", "train/loss 0.25\n"}) {
    EXPECT_TRUE(has(text, part)) << part << text;
  }
  EXPECT_TRUE(has(output({"show", "@/a", "--json"}), R"("ranks":[])"));
}

TEST_F(RunsCommandTest, ComparesSettingsAndLosses) {
  const std::string text = output({"diff", "@/a", "@/b"});
  for (const char* part :
       {"lr             0.003   0.01\n", "wandb.enabled  false   true\n",
        "extra          (none)  1\n", "losses part at step 10: 0.25 and 0.125",
        "they differ by more than 1% at step 10"}) {
    EXPECT_TRUE(has(text, part)) << part << text;
  }
  EXPECT_FALSE(has(text, "tags"));
  EXPECT_TRUE(has(output({"diff", "@/a", "@/b", "--json"}),
                  R"("first_difference":{"step":10,"first":0.25,)"));
  const std::string equal = output({"diff", "@/a", "@/a"});
  EXPECT_TRUE(has(equal, "all settings are equal"));
  EXPECT_TRUE(has(equal, "losses are equal at all 2 common steps, up to 10"));
}

TEST_F(RunsCommandTest, SaysWhatIsWrongAndWhatToDo) {
  EXPECT_TRUE(has(refusal({"@/none"}), "No such file"));
  fs::create_directory(folder_.path() / "empty");
  EXPECT_TRUE(has(refusal({"@/empty"}), "holds no run; lockstep train"));
  EXPECT_TRUE(
      has(refusal({"show", "@"}), "is not a run folder; lockstep runs"));
  EXPECT_TRUE(has(refusal({"show"}), "name one run folder"));
  EXPECT_TRUE(has(refusal({"diff", "@/a"}), "name two run folders"));
  EXPECT_TRUE(has(refusal({"@", "@"}), "lockstep runs diff"));
  EXPECT_TRUE(has(refusal({"--jsonl"}), "unknown option --jsonl"));
}

TEST_F(RunsCommandTest, NamesThatATerminalWouldObeyAreEscaped) {
  add("\x1b[2J", "lr: 1\n", "");
  EXPECT_FALSE(has(output({"@"}), "\x1b"));
}

TEST_F(RunsCommandTest, DamagedSettingsAreAnErrorWithTheirPlace) {
  folder_.write("a/config.yaml", "# recipe: tiny\nlr: [1\n");
  EXPECT_TRUE(has(refusal({"diff", "@/a", "@/b"}), "config.yaml:"));
  EXPECT_EQ(refusal({"@"}), "");
}

}  // namespace
}  // namespace lockstep
