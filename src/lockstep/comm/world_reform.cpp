// Worlds whose ranks are replaced (World::reform).
#include <fmt/format.h>

#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/comm/world_impl.h"
#include "lockstep/error.h"
#include "lockstep/world.h"

namespace lockstep {
namespace {

// A launcher that replaces a rank does so at once.
constexpr double kReplacementSeconds = 20;
// A new process that dies while it connects must not hold the others up.
constexpr std::chrono::seconds kConnectTimeout{20};

}  // namespace

std::function<bool()> World::Impl::is_outdated() const {
  if (!can_reform) return {};
  return [page = recovery, generation = place.generation] {
    return page.generation() != generation;
  };
}

std::chrono::milliseconds World::Impl::connect_timeout() const {
  if (place.generation == 0) return timeout;
  return std::min<std::chrono::milliseconds>(timeout, kConnectTimeout);
}

void World::Impl::connect() {
  for (;;) {
    place.generation = recovery.generation();
    try {
      connect_once();
      if (place.generation > 0) exchange_states();
      return;
    } catch (const std::exception&) {
      // A rank that dies meanwhile shows in many ways: a refused connection, a
      // timeout, memory that is not shared.
      disconnect();
      // The launcher may learn of the death later than its peers.
      if (place.generation == 0 || !wait_for_generation()) throw;
    }
  }
}

void World::Impl::disconnect() {
  group.reset();
  control.reset();
  arena.reset();
  barrier.reset();
  store.reset();
}

bool World::Impl::wait_for_generation() const {
  const int64_t begin = base::monotonic_ns();
  while (recovery.generation() == place.generation) {
    if (base::seconds_between(begin, base::monotonic_ns()) >
        kReplacementSeconds) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void World::Impl::exchange_states() {
  const auto key = [](int rank) { return fmt::format("state/{}", rank); };
  store->set(key(place.rank), recovery.is_ready() ? "held" : "none");
  ranks_without_state.clear();
  for (int rank = 0; rank < place.world_size; ++rank) {
    const auto bytes = store->get(key(rank));
    if (std::string(bytes.begin(), bytes.end()) == "none") {
      ranks_without_state.push_back(rank);
    }
  }
}

void World::Impl::withdraw_state() {
  if (!can_reform) return;
  require_open();
  const auto lost = [this] {
    return PeerError(fmt::format(
        "rank {} lost another rank when all had done their work", place.rank));
  };
  if (!is_alone()) {
    // Not noted as a collective: one rank may write its last file for long.
    const auto absent = barrier->arrive_and_wait(timeout);
    if (absent.store_lost || !absent.left.empty()) throw lost();
  }
  if (!recovery.end(place.generation)) throw lost();
}

void World::Impl::reform() {
  if (!can_reform) {
    throw ConfigError(
        "World::reform(): only in a job started with --recover memory");
  }
  status.set_phase(base::Phase::kConnecting);
  disconnect();
  if (!wait_for_generation()) {
    throw PeerError(fmt::format(
        "rank {} lost another rank, and none was replaced", place.rank));
  }
  status.restart_collectives();
  connect();
  status.set_phase(base::Phase::kReady);
}

bool World::can_reform() const { return impl_->can_reform; }

void World::offer_state() const { impl_->recovery.set_ready(); }

void World::reform() const { impl_->reform(); }

void World::withdraw_state() const { impl_->withdraw_state(); }

const std::vector<int>& World::ranks_without_state() const {
  return impl_->ranks_without_state;
}

}  // namespace lockstep
