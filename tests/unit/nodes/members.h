// Members of a job who talk to its rounds; time passes when the test says so.
// Member 10 is the host.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/nodes/rounds.h"

namespace lockstep::testing {

constexpr int64_t kSecond = 1'000'000'000;

class Members : public ::testing::Test {
 protected:
  explicit Members(const nodes::RoundsConfig& config)
      : config_(config), rounds_(config, {.ns = kSecond, .unix = 1000}) {}

  nodes::Moment now() const {
    return {.ns = now_ns_, .unix = 1000 + static_cast<double>(now_ns_) * 1e-9};
  }

  void join(nodes::MemberId id, const std::string& name,
            std::optional<int> node = std::nullopt,
            std::optional<nodes::FormerPlace> former = std::nullopt) {
    say(id, nodes::Join{.num_nodes = config_.num_nodes,
                        .min_nodes = config_.min_nodes,
                        .num_processes = 2,
                        .node = node,
                        .is_host = id == 10,
                        .host_name = name,
                        .unix_time = 1000,
                        .master_addr = "10.0.0.1",
                        .master_port = 5,
                        .keeps_state = config_.keeps_state,
                        .holds_state = holders_.contains(id),
                        .former = former,
                        .address = "at " + name});
  }

  void say(nodes::MemberId from, const nodes::Message& message) {
    rounds_.receive(from, message, now());
    collect();
  }

  void leave(nodes::MemberId id, nodes::Fate fate = nodes::Fate::kEnded) {
    rounds_.leave(id, "gone", now(), fate);
    collect();
  }

  void collect() {
    for (auto& [to, message] : rounds_.take_outgoing()) {
      if (!std::holds_alternative<nodes::Alive>(message)) {
        heard_[to].push_back(message);
      }
    }
    for (const nodes::MemberId id : rounds_.take_lost()) lost_.push_back(id);
  }

  // All members give signs of life meanwhile, but those named.
  void pass(double seconds, const std::vector<nodes::MemberId>& silent = {}) {
    const int64_t end =
        now_ns_ + static_cast<int64_t>(seconds * double{kSecond});
    while (now_ns_ < end) {
      now_ns_ += kSecond;
      for (nodes::MemberId id = 10; id < 20; ++id) {
        if (std::find(silent.begin(), silent.end(), id) == silent.end()) {
          rounds_.receive(id, nodes::Alive{}, now());
        }
      }
      rounds_.tick(now());
      collect();
    }
  }

  // The last message to a member, of this type.
  template <typename Type>
  Type last(nodes::MemberId id) {
    if (heard_[id].empty() ||
        !std::holds_alternative<Type>(heard_[id].back())) {
      ADD_FAILURE() << "member " << id << " did not hear that";
      return {};
    }
    return std::get<Type>(heard_[id].back());
  }

  int64_t now_ns_ = kSecond;
  nodes::RoundsConfig config_;
  std::set<nodes::MemberId> holders_;  // of the job's state, when they join
  nodes::Rounds rounds_;
  std::map<nodes::MemberId, std::vector<nodes::Message>> heard_;
  std::vector<nodes::MemberId> lost_;
};

}  // namespace lockstep::testing
