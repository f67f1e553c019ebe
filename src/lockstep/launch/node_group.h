// The nodes of a job as one launcher of them sees them: who takes part, and
// what all of them do next.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/attempt.h"
#include "lockstep/launch/control.h"
#include "lockstep/launch/job_verdict.h"
#include "lockstep/launch/job_world.h"
#include "lockstep/launch/plan.h"
#include "lockstep/launch/static_meeting.h"
#include "lockstep/launch/succession.h"
#include "lockstep/nodes/node_link.h"
#include "lockstep/nodes/node_server.h"

namespace lockstep::launch {

// The store that the host has opened for the next attempt.
struct OfferedStore {
  int port = 0;
  std::string secret = {};
};

// Waits only in form() and agree(); both watch the control pipe.
class NodeGroup {
 public:
  using Say = std::function<void(const std::string&)>;

  // In a job without numbers, listens at the endpoint if that can be done here.
  // Throws ConfigError and IoError.
  NodeGroup(const Plan& plan, ControlReader& control, Say say);
  ~NodeGroup();
  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;

  // This node hosts the store, at this address.
  bool is_host() const { return is_host_; }
  const std::string& store_address() const { return store_address_; }

  // Either the world of the next attempt, or why there is none.
  struct Formed {
    std::optional<JobWorld> world = {};
    JobVerdict end = {};
  };
  // Waits until all nodes are ready. `store` has a value on the host. Throws
  // TimeoutError, PeerError and ConfigError.
  // `holds_state`: processes of this node wait for it with the job's state.
  Formed form(int attempt, const std::optional<OfferedStore>& store,
              bool holds_state = false);

  // SIGTERM to this node's launcher ends its part of the world only.
  bool may_leave(const JobWorld& world) const;
  // Before the workers of an attempt run, and after them.
  bool leaves_on(int signal) const;

  // Waits until all nodes have ended the attempt; all get the same verdict, but
  // one that leaves does not start again.
  JobVerdict agree(const AttemptResult& own, const JobWorld& world,
                   JobJudge& judge, double attempt_seconds);

  // To the other launchers; nullptr: some nodes run something else.
  nodes::NodeLink* link() { return link_.get(); }

  // The job does not go on: the others must not wait. An elastic job does.
  void announce_stop(int signal);

  // Connections that were refused since the last call. While this waits, the
  // first of each kind are said at once.
  std::vector<std::string> take_notices();

 private:
  void try_to_host();
  bool is_cancelled();
  std::optional<JobWorld> meet(const std::optional<OfferedStore>& store);
  void open_channel(const std::string& host, int port);
  void open_link(const std::string& host, int port, double join_seconds);
  JobVerdict find_new_host(const nodes::LinkLoss& loss);
  JobVerdict follow_new_host(const std::string& reason);
  bool host_at(const std::string& address);
  bool reach(const std::string& address);
  nodes::JobIdentity identity() const;
  void say_that_it_forms() const;
  void say_who_is_there(const JobWorld& world) const;
  nodes::Join join_message(const std::optional<OfferedStore>& store,
                           bool holds_state) const;
  // No value: end_ says why nothing more comes.
  std::optional<nodes::Message> next_message();
  void wait_for_news();
  void take_signals();
  void take_loss(const nodes::LinkLoss& loss);
  void end_for(const nodes::LinkLoss& loss);
  std::optional<JobVerdict> wait_for_verdict(const JobWorld& world,
                                             JobJudge& judge,
                                             double attempt_seconds);
  JobVerdict go_on_without_host(const AttemptResult& own, const JobWorld& world,
                                JobJudge& judge, double attempt_seconds);
  JobVerdict judge_lost(const AttemptResult& own, const JobWorld& world,
                        JobJudge& judge, double attempt_seconds);
  JobVerdict stop_here(const JobVerdict& verdict, int signal);
  JobVerdict judge_alone(const AttemptResult& own, const JobWorld& world,
                         JobJudge& judge, double attempt_seconds);

  const Plan& plan_;
  ControlReader& control_;
  Say say_;
  bool is_host_ = false;
  bool is_waiting_for_others_ = false;  // this node's workers have ended
  int asked_signal_ = 0;                // while it waits for others
  std::string store_address_;
  std::string channel_key_;  // instead of a secret file
  base::FileDescriptor listener_;
  std::optional<StaticMeeting> meeting_;
  std::optional<ChannelNote> offer_;
  std::unique_ptr<nodes::NodeServer> server_;
  std::unique_ptr<nodes::NodeLink> link_;
  std::string job_;           // its unique name, from the first world on
  std::string host_address_;  // of the channel
  Succession succession_;
  std::optional<nodes::LinkLoss> lost_host_;  // that another node may replace
  std::optional<JobVerdict> end_;
};

}  // namespace lockstep::launch
