// How nodes with fixed numbers meet in node 0's store, in torchrun's own way:
// some of them may be torchrun's agents.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/launch/plan.h"
#include "lockstep/net/store_client.h"

namespace lockstep::launch {

// Where launchers of Lockstep find the host of their channel.
struct ChannelNote {
  int port = 0;
  std::string key;  // instead of a secret file; empty: there is one
};

struct StaticPlaces {
  int first_rank = 0;
  int num_ranks = 1;
  int first_role_rank = 0;
  int role_size = 1;
  // No value: not every node runs `lockstep run`.
  std::optional<ChannelNote> channel = {};
};

class StaticMeeting {
 public:
  // Asked between waits: the launcher has to stop.
  using IsCancelled = std::function<bool()>;

  StaticMeeting(const Plan& plan, IsCancelled is_cancelled);

  // Waits for the store of node 0, and there for all nodes. `channel` is what
  // node 0 offers. No value when cancelled. Throws TimeoutError that says who
  // is missing.
  std::optional<StaticPlaces> meet(const std::optional<ChannelNote>& channel);

  // Node 0, in the new store of a later attempt: for a launcher that takes the
  // place of one that is gone. Throws PeerError.
  void offer_again(const ChannelNote& channel);

  // Without a channel: waits until all nodes have ended well, at most as long
  // as torchrun does. Throws nothing: a store that is gone needs no goodbye.
  void wait_for_end() noexcept;

 private:
  bool connect();
  std::optional<StaticPlaces> meet_once(
      const std::optional<ChannelNote>& channel);
  void wait_for_nodes();
  void wait_for_ranks();
  bool wait_for(const std::vector<std::string>& keys, double seconds);
  void introduce();
  void assign(const std::optional<ChannelNote>& channel);
  std::optional<ChannelNote> find_channel();
  std::string key(const std::string& name) const;

  const Plan& plan_;
  IsCancelled is_cancelled_;
  std::unique_ptr<net::StoreClient> store_;
};

}  // namespace lockstep::launch
