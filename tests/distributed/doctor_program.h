// `lockstep doctor` as its tests start it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/base/strings.h"
#include "support/messages.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {

using Words = std::vector<std::string>;

class DoctorProgram : public ::testing::Test {
 protected:
  // Without a worker nothing is measured: the other checks take milliseconds.
  ProcessOptions without_worker() const {
    ProcessOptions options = in_folder();
    options.environment["LOCKSTEP_WORKER"] = "/no/such/worker";
    return options;
  }
  ProcessOptions in_folder() const {
    return {.environment = {{"TMPDIR", temp_.path().string()}},
            .folder = folder_.path().string(),
            .timeout_seconds = 600};
  }
  Words doctor(const Words& words) const {
    Words command = {LOCKSTEP_PROGRAM, "doctor"};
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
  // A shell sets limits or mounts up first.
  Words doctor_after(const std::string& setup, const Words& words,
                     const Words& prefix = {}) const {
    Words command = prefix;
    for (const std::string& word :
         Words{"sh", "-c", setup + " && exec \"$@\"", "sh"}) {
      command.push_back(word);
    }
    for (const std::string& word : doctor(words)) command.push_back(word);
    return command;
  }

  // The line of a check: "FAILURE  port  ...".
  static std::string line_of(const ProcessResult& result,
                             const std::string& check) {
    for (const std::string& line : base::split(result.out, '\n')) {
      const std::string rest = line.substr(std::min<size_t>(line.size(), 9));
      if (rest.starts_with(check + " ")) return line;
    }
    return "";
  }
  static void expect_failure(const ProcessResult& result,
                             const std::string& check, int code,
                             const std::string& text) {
    EXPECT_EQ(result.exit_code, code) << result.out << result.err;
    const std::string line = line_of(result, check);
    EXPECT_TRUE(line.starts_with("FAILURE ")) << result.out << result.err;
    expect_in(line, text);
    expect_in(line, "; mend: ");
  }
  void expect_nothing_left() const {
    EXPECT_TRUE(std::filesystem::is_empty(temp_.path()));
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  }

  TempDir temp_;
  TempDir folder_;
};

}  // namespace lockstep::testing
