// A job on several machines, which are network namespaces of this one: three
// nodes with two ranks each.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "support/hosts.h"
#include "support/messages.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {

using Words = std::vector<std::string>;

constexpr int kNodes = 3;
// A node that stays silent is lost after 60 s, which no busy machine reaches.
constexpr const char* kPatient =
    "--rdzv-conf=join_timeout=120,keep_alive_interval=1,"
    "keep_alive_max_attempt=60";
// After 5 s, for nodes that shall be lost by silence.
constexpr const char* kQuick =
    "--rdzv-conf=join_timeout=120,keep_alive_interval=0.5,"
    "keep_alive_max_attempt=10";

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class Nodes : public ::testing::Test {
 protected:
  explicit Nodes(Hosts::Family family = Hosts::Family::kIpv4)
      : hosts_(kNodes, family) {
    secret_ = folder_.write("job.secret", "a secret of the test, 32 bytes..");
    chmod(secret_.c_str(), 0600);
  }

  std::string endpoint() const {
    const std::string address = hosts_.address(0);
    return address.find(':') == std::string::npos ? address + ":29400"
                                                  : "[" + address + "]:29400";
  }

  // Joining in any order.
  Words join(const Words& more = {}) const {
    return Words{LOCKSTEP_PROGRAM,     "run",   "--nnodes=3",      "--nproc=2",
                 "--rdzv-id",          "job",   "--rdzv-endpoint", endpoint(),
                 "--rdzv-secret-file", secret_, kPatient} +
           more;
  }

  Words fixed(int node, const Words& more = {}) const {
    return Words{LOCKSTEP_PROGRAM, "run",
                 "--nnodes=3",     "--nproc=2",
                 "--node-rank",    std::to_string(node),
                 "--master-addr",  hosts_.address(0),
                 kPatient} +
           more;
  }

  ProcessOptions options() const {
    return {.environment = {{"OMP_NUM_THREADS", "1"},
                            {"CUDA_VISIBLE_DEVICES", ""},
                            {"LC_ALL", "C"},
                            {"TMPDIR", folder_.path().string()}}};
  }

  Process& start(int host, const Words& command) {
    processes_.push_back(
        std::make_unique<Process>(hosts_.on(host, command), options()));
    return *processes_.back();
  }

  void start_all(const Words& command) {
    for (int host = 0; host < kNodes; ++host) start(host, command);
  }

  void expect_up() {
    for (auto& process : processes_) {
      ASSERT_TRUE(process->wait_for_output("up")) << process->err();
    }
  }

  static bool says(const Process& process, const std::string& text) {
    return wait_for(
        [&] { return process.err().find(text) != std::string::npos; }, 120);
  }

  std::vector<ProcessResult> wait_for_all() {
    std::vector<ProcessResult> results;
    for (auto& process : processes_) results.push_back(process->wait());
    ended_.insert(ended_.end(), std::move_iterator(processes_.begin()),
                  std::move_iterator(processes_.end()));
    processes_.clear();
    return results;
  }

  // The report of the root cause, which all launchers print alike.
  static std::string report_in(const std::string& text) {
    const auto begin = text.find("Root Cause");
    return begin == std::string::npos ? "" : text.substr(begin);
  }

  void expect_same_report(const std::vector<ProcessResult>& results) {
    for (const ProcessResult& result : results) {
      EXPECT_EQ(report_in(result.err), report_in(results[0].err));
      EXPECT_EQ(result.exit_code, results[0].exit_code);
    }
  }

  const TempDir folder_;
  std::string secret_;
  Hosts hosts_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Process>> ended_;  // whose output is still asked
};

class Ipv6Nodes : public Nodes {
 protected:
  Ipv6Nodes() : Nodes(Hosts::Family::kIpv6) {}
};

inline Words shell(const std::string& script) { return {"sh", "-c", script}; }

}  // namespace lockstep::testing
