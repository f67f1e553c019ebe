// How processes of one machine give each other their memory: unix sockets.
//
// Every rank listens at an abstract name (no file; visible within its network
// namespace), and every pair of ranks passes one descriptor in each direction.
// The sockets stay open: the end of one is how a rank learns that another is
// gone, whatever killed it.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep::comm {

struct PeerListener {
  std::string name;  // 32 random characters.
  base::FileDescriptor socket;
};

// Throws IoError.
PeerListener listen_for_peers(int num_ranks);

struct PeerExchange {
  int rank = 0;
  const PeerListener* listener = nullptr;
  std::vector<std::string> names = {};  // Names of all ranks' listeners.
  int own_memory = -1;
  std::chrono::milliseconds timeout{0};
  uid_t user = geteuid();  // All ranks run as this user; others are sent away.
  // Asked again and again while this rank waits: the reason for which another
  // rank has given up.
  std::function<std::optional<std::string>()> find_refusal = [] {
    return std::optional<std::string>();
  };
};

// What one rank gave to this one. Empty for itself.
struct Peer {
  base::FileDescriptor socket;
  base::FileDescriptor memory;
};

// One per rank. Processes of other users are not listened to. Throws IoError
// when a rank cannot be reached, has given up, or does not answer in time.
std::vector<Peer> exchange_descriptors(const PeerExchange& exchange);

// True when the other end is closed: its process ended, or left the group.
bool is_gone(const Peer& peer);

}  // namespace lockstep::comm
