// A node's connection to the host of its job.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lockstep/nodes/handshake.h"
#include "lockstep/nodes/messages.h"

namespace lockstep::nodes {

struct NodeLinkConfig {
  std::string host = {};  // a name or an address
  int port = 0;
  JobIdentity job = {};
  double join_seconds = 600;  // to find the host
  double alive_seconds = 5;   // between signs of life
  int max_missed = 3;         // such intervals without one: the host is lost
};

// Why a link is of no use (any more).
struct LinkLoss {
  enum class Kind {
    kRefused,   // what the user gave does not fit the job that is there
    kNotFound,  // no launcher of the job was found in time
    kLost,      // it was there, and is gone
  };
  Kind kind = Kind::kLost;
  std::string reason = {};
};

// Its own thread, with all signals blocked there, looks for the host, keeps the
// connection alive, sends and receives. Functions are thread-safe and do not
// wait; the destructor waits for a name that is being looked up.
class NodeLink {
 public:
  explicit NodeLink(NodeLinkConfig config);  // Throws IoError.
  ~NodeLink();
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  // Readable when there is something to take, or the link is lost.
  int fd() const;
  // The oldest message that came; no value: there is none.
  std::optional<Message> next();
  std::optional<LinkLoss> loss() const;
  // The host was found and has read the proof; fd() is readable then.
  bool is_found() const;

  // Before the host is found, messages wait for it.
  void send(const Message& message);
  // Part of every sign of life; a change is sent at once.
  void set_stuck(bool is_stuck);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace lockstep::nodes
