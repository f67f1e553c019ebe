#include "lockstep/launch/succession.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "lockstep/base/files.h"
#include "lockstep/net/address.h"

namespace lockstep::launch {
namespace {

enum class PortState { kClosed, kOpen, kClosing };

PortState look_at_port(const net::SocketAddress& address) {
  constexpr int kAnswerMilliseconds = 1000;
  base::FileDescriptor probe(
      socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return PortState::kOpen;
  int error = 0;
  if (connect(probe.get(), address.get(), address.size) != 0) error = errno;
  pollfd entry{.fd = probe.get(), .events = POLLOUT, .revents = 0};
  if (error == EINPROGRESS && poll(&entry, 1, kAnswerMilliseconds) == 1) {
    socklen_t size = sizeof(error);
    getsockopt(probe.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == ECONNREFUSED) return PortState::kClosed;
  if (error != 0) return PortState::kOpen;
  // A launcher that is ending may still have accepted; one that lives waits for
  // this end to speak.
  entry.events = POLLIN;
  return poll(&entry, 1, kAnswerMilliseconds) == 1 ? PortState::kClosing
                                                   : PortState::kOpen;
}

}  // namespace

void Succession::begin(const nodes::World& world) {
  world_ = world;
  host_ = 0;
  departed_.clear();
  silent_.clear();
}

std::vector<Succession::Candidate> Succession::candidates() const {
  std::vector<Candidate> found;
  if (!world_) return found;
  for (int node = 0; node < std::ssize(world_->addresses); ++node) {
    if (departed_.contains(node) || silent_.contains(node)) continue;
    found.push_back({.node = node,
                     .address = world_->addresses[static_cast<size_t>(node)],
                     .is_this_node = node == world_->node});
  }
  return found;
}

std::optional<nodes::FormerPlace> Succession::former_place() const {
  if (!world_ || (departed_.empty() && silent_.empty())) return std::nullopt;
  return nodes::FormerPlace{.attempt = world_->attempt, .node = world_->node};
}

std::optional<nodes::LostWorld> Succession::lost_world(
    const RendezvousSettings& settings) const {
  if (!former_place()) return std::nullopt;
  return nodes::LostWorld{
      .attempt = world_->attempt,
      .num_restarts = world_->num_restarts,
      .generation = world_->generation,
      .num_nodes = world_->num_nodes,
      .departed = departed_,
      .silent = silent_,
      .wait_seconds = silence_seconds(settings),
      .settle_seconds = silent_.empty() ? 0 : settle_seconds(settings)};
}

double silence_seconds(const RendezvousSettings& settings) {
  return settings.keep_alive_interval * settings.keep_alive_max_attempt;
}

double settle_seconds(const RendezvousSettings& settings) {
  constexpr double kEndSeconds = 2;  // SIGKILL, and the pauses of busy machines
  return settings.keep_alive_interval + kEndSeconds;
}

bool is_port_closed(const std::string& host, int port) {
  constexpr int kLooks = 3;
  const net::Resolution found = net::resolve(host, port);
  for (const net::SocketAddress& address : found.addresses) {
    PortState state = PortState::kClosing;
    for (int i = 0; i < kLooks && state == PortState::kClosing; ++i) {
      state = look_at_port(address);
      if (state == PortState::kClosing) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }
    if (state != PortState::kClosed) return false;
  }
  return !found.addresses.empty();
}

}  // namespace lockstep::launch
