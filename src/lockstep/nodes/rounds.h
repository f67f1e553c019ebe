// Who takes part in a job of several nodes, and how far an attempt is: the
// server without its sockets and clocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lockstep/nodes/messages.h"

namespace lockstep::nodes {

using MemberId = uint64_t;

// The last world of an elastic job whose host is lost. Those that are left go
// on when they are more than half of it, or the half with the lowest number: so
// no two parts of a network that fell apart do.
struct LostWorld {
  int attempt = 0;
  int num_restarts = 0;
  int generation = 0;
  int num_nodes = 2;
  std::set<int> departed = {};  // nodes that have ended for certain
  std::set<int> silent = {};    // former hosts that may live
  double wait_seconds = 15;     // for all that are left
  double settle_seconds = 0;    // until processes elsewhere have ended
};

struct RoundsConfig {
  int num_nodes = 2;  // at most, in an elastic job
  int min_nodes = 0;  // of an elastic job; 0: the number of nodes is fixed
  bool keeps_state = false;       // --recover memory
  double join_seconds = 600;      // for these nodes, from the first on
  double last_call_seconds = 30;  // for more of them, at the first start
  double alive_seconds = 5;       // between signs of life
  int max_missed = 3;   // such intervals without one: the node is lost
  int max_notes = 100;  // of one attempt that are passed on
  std::optional<LostWorld> lost_world = {};  // of the host before this one
};

// What is known of a member that is gone.
enum class Fate { kEnded, kUnknown };

struct Moment {
  int64_t ns = 0;   // monotonic
  double unix = 0;  // wall clock, in seconds
};

// Not thread-safe. Nothing that a member says throws or ends it.
class Rounds {
 public:
  Rounds(RoundsConfig config, Moment now);

  void receive(MemberId from, const Message& message, Moment now);
  // The connection of a member is gone.
  void leave(MemberId member, const std::string& why, Moment now,
             Fate fate = Fate::kEnded);
  // To be called at next_deadline_ns(), and as often as one likes.
  void tick(Moment now);
  int64_t next_deadline_ns() const;

  struct Outgoing {
    MemberId to = 0;
    Message message = {};
  };
  std::vector<Outgoing> take_outgoing();
  // To be disconnected once what they are sent is on its way.
  std::vector<MemberId> take_dismissed();
  // To be disconnected at once: they do not answer.
  std::vector<MemberId> take_lost();
  bool has_outgoing() const { return !outgoing_.empty(); }

  // The last verdict was given: nothing follows.
  bool is_over() const { return phase_ == Phase::kOver; }

 private:
  enum class Phase { kJoining, kRunning, kEnding, kOver };
  static constexpr const char* kEndedWithout =
      "the job ended without this node";

  struct Member {
    Join join = {};
    std::optional<int> node = {};  // its number, from the first world on
    int64_t heard_ns = 0;
    double clock_offset = 0;
    bool is_ready = false;
    bool is_stuck = false;
    bool is_leaving = false;
  };
  struct Node {
    std::optional<MemberId> member = {};
    NodeEntry entry = {};
    std::optional<NodeResult> result = {};
  };

  // Has joined with a number that another, which may be gone soon, still has.
  struct Newcomer {
    Join join = {};
    Moment came = {};
    std::string holder = {};  // its name
  };

  void join(MemberId from, const Join& join, Moment now);
  void admit(MemberId from, const Join& join, Moment now);
  void queue(MemberId from, const Join& join, Moment now);
  void admit_newcomers(Moment now);
  void refuse_late_newcomers(Moment now);
  void dismiss_newcomers();
  void tell_it_is_full(MemberId member);
  void remove(MemberId member, const std::string& why, Moment now, Fate fate);
  void pass_on(MemberId from, const Note& note);
  void hear_of_end(MemberId from, const Ending& ending, Moment now);
  void end_all(const Verdict& verdict);
  std::string objection_to(const Join& join) const;
  const Member* holder_of(std::optional<int> node) const;
  void refuse(MemberId member, const std::string& reason);
  void form_world(Moment now);
  std::vector<MemberId> choose_members() const;
  void number(const std::vector<MemberId>& chosen);
  World describe_world();
  void take_result(MemberId from, const std::string& text);
  void end_attempt(const End& end, std::optional<MemberId> except);
  void end_if_all_are_stuck();
  void collect();
  void give_verdict(const Verdict& verdict, Moment now);
  void give_up_joining();
  void finish();
  void send(MemberId to, Message message);
  Node* node_of(MemberId member);

  // Elastic jobs.
  bool is_elastic() const { return config_.min_nodes > 0; }
  End::Kind regroup_kind() const {
    return config_.keeps_state ? End::Kind::kSuspend : End::Kind::kRegroup;
  }
  int fewest_nodes() const;
  bool may_form(Moment now);
  bool may_succeed(Moment now);
  bool is_outvoted() const;
  std::set<int> former_nodes() const;
  bool has_quorum(const std::set<int>& present) const;
  void give_up_succession(size_t num_present);
  std::vector<std::string> first_addresses() const;
  void renumber(std::vector<MemberId> chosen);
  void plan_growth(MemberId newcomer, Moment now);
  void grow(Moment now);
  std::vector<MemberId> waiting_for_a_place() const;
  bool let_go(MemberId member, Moment now);
  void let_leavers_go(Moment now);
  int num_staying() const;

  int64_t join_ns() const;
  int64_t lost_after_ns() const;

  RoundsConfig config_;
  Phase phase_ = Phase::kJoining;
  int attempt_ = 0;
  int num_restarts_ = 0;  // that count
  int generation_ = 0;    // worlds in a row that hand their state on
  std::optional<MemberId> host_;
  std::map<MemberId, Member> members_;
  std::map<MemberId, Newcomer> newcomers_;
  int num_notes_ = 0;  // of this attempt
  std::vector<Node> nodes_;
  std::set<int> silent_;  // of them, that are lost but may live
  int64_t begin_ns_;
  int64_t join_deadline_ns_;
  std::optional<int64_t> last_call_ns_;  // a start waits until then
  std::optional<int64_t> growth_ns_;     // the attempt ends then for newcomers
  std::optional<int64_t> leave_ns_;      // and then for those that leave
  int64_t next_alive_ns_;
  std::vector<Outgoing> outgoing_;
  std::vector<MemberId> dismissed_;
  std::vector<MemberId> lost_;
};

}  // namespace lockstep::nodes
