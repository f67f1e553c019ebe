// How the ranks of a job find each other: a c10d store, and the table of peers.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <string>

#include "lockstep/comm/place.h"

namespace c10d {
class Store;
}

namespace lockstep::comm {

// Connects to the store of the job; rank 0 hosts it unless the launcher does.
// Where the job has several ports to choose from, place.master_port becomes the
// one that was taken. Throws ConfigError when the port is taken or belongs to
// another user, TimeoutError when the store does not answer in time. Waiting in
// it ends with a PeerError once is_outdated() says so.
c10::intrusive_ptr<c10d::Store> open_store(
    Place& place, std::chrono::milliseconds timeout,
    const std::function<bool()>& is_outdated = {});

struct PeerTable {
  std::string device_identity;  // Empty for the CPU.
  bool may_share_device = false;
};

// Waits until every rank has connected. Throws TimeoutError naming the missing
// ranks, ConfigError when two processes claim one rank, the world sizes differ,
// or two ranks hold one GPU.
void exchange_peers(c10d::Store& store, const Place& place,
                    const PeerTable& peers, std::chrono::milliseconds timeout);

// After exchange_peers(): the address of this host that the other ranks reach,
// which is the one that leads to MASTER_ADDR. On the host of rank 0 that may be
// a loopback address, as many hosts resolve their own name to one; for a job of
// several machines it is then the address that leads to a rank elsewhere.
std::string choose_address(c10d::Store& store, const Place& place);

}  // namespace lockstep::comm
