// Runs lockstep-prepare on data sets that Python writes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {

class PrepareFixture : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  // What the script prints.
  void python(const std::string& script, const Words& words,
              const ProcessOptions& options = {}) {
    Words command = {TORCH_PYTHON, std::string(PYTHON_SCRIPTS) + "/" + script};
    command.insert(command.end(), words.begin(), words.end());
    const ProcessResult result = run(command, options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    printed_ = std::string(base::trim(result.out));
  }

  Words command(const Words& more = {}) const {
    Words words = {PREPARE_PROGRAM, "atlas", "--input", in_, "--output", out_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  ProcessResult prepare(const Words& more = {}) const {
    return run(command(more));
  }

  // Name and reason of each line of rejected.txt.
  std::map<std::string, std::string> rejected() const {
    std::map<std::string, std::string> reasons;
    const auto text =
        base::try_read_file(std::filesystem::path(out_) / "rejected.txt");
    for (const std::string& line : base::split(text.value_or(""), '\n')) {
      const size_t tab = line.find('\t');
      if (tab == std::string::npos) continue;
      reasons[line.substr(0, tab)] = line.substr(tab + 1);
    }
    return reasons;
  }
  void expect_reason(const std::string& name, const std::string& part) const {
    const auto all = rejected();
    const auto found = all.find(name);
    ASSERT_NE(found, all.end()) << name;
    EXPECT_NE(found->second.find(part), std::string::npos) << found->second;
  }
  size_t num_hidden() const {
    size_t count = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(out_)) {
      count += entry.path().filename().string().starts_with('.') ? 1 : 0;
    }
    return count;
  }

  TempDir folder_;
  std::string in_ = folder_.path() / "in";
  std::string out_ = folder_.path() / "out";
  std::string printed_;
};

}  // namespace lockstep::testing
