// What launchers of several nodes say to each other.
//
// One of them, the host, serves the others and is a client of its own server.
// An attempt goes: every node joins; the server sends all the world; nodes run;
// the first that ends early says so, and the server tells the others; every
// node sends its result; the host gets all results and gives the verdict, which
// the server sends to all. In an elastic job the server also ends an attempt
// for nodes that join or leave.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/nodes/frames.h"

namespace lockstep::nodes {

// A node's number in an earlier world.
struct FormerPlace {
  int attempt = 0;
  int node = 0;

  bool operator==(const FormerPlace&) const = default;
};

// Node to server: ready for the next attempt.
struct Join {
  int num_nodes = 1;  // at most, in an elastic job
  int min_nodes = 0;  // of an elastic job; 0: the number of nodes is fixed
  int num_processes = 1;
  std::optional<int> node = {};  // of --node-rank; no value: any
  bool is_host = false;
  std::string host_name = {};
  double unix_time = 0;          // its clock
  std::string master_addr = {};  // the host's store
  int master_port = 0;
  std::string store_secret = {};
  std::string job = {};      // the host's unique name of it
  bool keeps_state = false;  // --recover memory
  bool holds_state = false;  // its processes live, and have the state
  std::optional<FormerPlace> former = {};  // under a host that is lost
  std::string address = {};  // of the connection; the server fills it in

  bool operator==(const Join&) const = default;
};

// Both ways, every few seconds.
struct Alive {
  bool is_stuck = false;  // no rank of the node does anything, beyond the limit

  bool operator==(const Alive&) const = default;
};

// Node to server: its workers are ending.
struct Ending {
  int signal = 0;           // that asked for it; 0: a failure
  bool is_leaving = false;  // the job goes on without this node
  bool suspends = false;    // some have died, the others keep their state

  bool operator==(const Ending&) const = default;
};

// Node to server: no process of it is left, or those that are left wait.
struct Result {
  std::string text = {};  // for the host, which makes and reads it

  bool operator==(const Result&) const = default;
};

// Host to server, server to all.
struct Verdict {
  bool is_restart = false;
  bool is_counted = true;    // this restart counts against --max-restarts
  bool keeps_state = false;  // processes that live wait for the next world
  double delay_seconds = 0;  // before the restart
  int exit_code = 0;
  int stop_signal = 0;     // that ended the job; 0: none
  std::string text = {};   // to be printed by every launcher
  std::string cause = {};  // the root cause, encoded by the host
  // Not empty when the host leaves: with it these nodes, and another one hosts.
  std::vector<int> departed = {};

  bool operator==(const Verdict&) const = default;
};

struct NodeEntry {
  std::string host_name = {};
  int num_processes = 1;

  bool operator==(const NodeEntry&) const = default;
};

// Server to all: the attempt begins.
struct World {
  int attempt = 0;
  int num_restarts = 0;  // that count against --max-restarts
  // How many worlds before it have handed their state on to the next one; 0:
  // all processes start.
  int generation = 0;
  int node = 0;  // the receiver's number
  int num_nodes = 1;
  int first_rank = 0;  // of the receiver's
  int num_ranks = 1;
  std::string master_addr = {};
  int master_port = 0;
  std::string store_secret = {};
  std::string job = {};
  // Elastic jobs: of the first nodes, one of which hosts when this one is lost.
  std::vector<std::string> addresses = {};

  bool operator==(const World&) const = default;
};

// Server to all: end the workers.
struct End {
  enum class Kind {
    kFailure,
    kStop,
    kStuck,
    kRegroup,  // nodes join or leave: trainings save, then all start again
    // Ranks were lost, or nodes join or leave, and those that live keep their
    // state (--recover memory).
    kSuspend,
    // A node of an elastic job fell silent and may go on with others: no
    // process of this one may write any more.
    kCut,
  };
  Kind kind = Kind::kFailure;
  int signal = 0;

  bool operator==(const End&) const = default;
};

struct NodeResult {
  int node = 0;
  NodeEntry entry = {};
  std::string text = {};    // of its Result
  std::string loss = {};    // why the node is lost; empty: it is not
  bool may_live = false;    // it is lost, but nobody has seen its end
  bool is_leaving = false;  // the job goes on without it
  double lost_at = 0;       // by the host's clock
  double clock_offset = 0;  // to be added to its clock to get the host's

  bool operator==(const NodeResult&) const = default;
};

// Server to host.
struct Results {
  std::vector<NodeResult> nodes = {};
  std::vector<NodeEntry> newcomers = {};  // that get a place if all start again

  bool operator==(const Results&) const = default;
};

// Server to a node that cannot join.
struct Refusal {
  std::string reason = {};

  bool operator==(const Refusal&) const = default;
};

// Server to a node that has joined and waits for a place.
struct Queued {
  std::string reason = {};

  bool operator==(const Queued&) const = default;
};

// Node to server: a line about a rank that is stuck, while the job runs. Server
// to the other nodes: the same with the name of the node.
struct Note {
  std::string text = {};

  bool operator==(const Note&) const = default;
};

// Node to server: it has lost the host, and may look for another one.
struct Abandon {
  bool operator==(const Abandon&) const = default;
};

using Message = std::variant<Join, Alive, Ending, Result, Verdict, World, End,
                             Results, Refusal, Queued, Note, Abandon>;

Frame encode(const Message& message);
// Throws FormatError.
Message decode(const Frame& frame);

}  // namespace lockstep::nodes
