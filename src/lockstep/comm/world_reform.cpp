// Worlds whose ranks are replaced (World::reform).
#include <fmt/format.h>

#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/place_change.h"
#include "lockstep/base/strings.h"
#include "lockstep/comm/explain.h"
#include "lockstep/comm/world_impl.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device_event.h"
#include "lockstep/world.h"

namespace lockstep {
namespace {

// A launcher that replaces a rank does so at once.
constexpr double kReplacementSeconds = 20;
// A new process that dies while it connects must not hold the others up.
constexpr std::chrono::seconds kConnectTimeout{20};

// Set by ranks in reform().
constexpr const char* kComeKey = "reform/come";
constexpr const char* kAllKey = "reform/all";  // Have come: none has died.
constexpr const char* kAskedKey = "reform/asked";

}  // namespace

std::function<bool()> World::Impl::is_outdated() const {
  if (!can_reform()) return {};
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
    wait_while_suspended();
    if (place.generation != recovery.generation()) follow_launcher();
    const bool is_first = place.generation == 0 && place.round == 0;
    try {
      connect_once();
      if (!is_first) exchange_states();
      return;
    } catch (const std::exception&) {
      // A rank that dies meanwhile shows in many ways: a refused connection, a
      // timeout, memory that is not shared.
      disconnect();
      // The launcher may learn of the death later than its peers.
      if (is_first || !wait_for_generation()) throw;
    }
  }
}

// An interrupt that comes after this is one of the generation that is read
// next.
void World::Impl::wait_while_suspended() {
  do {
    while (recovery.is_suspended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (interrupts) interrupts->follow();
  } while (recovery.is_suspended());
}

// On several nodes the launcher also says which place this rank has now.
void World::Impl::follow_launcher() {
  std::optional<base::PlaceChange> change;
  int generation = 0;
  do {
    generation = recovery.generation();
    change = base::read_place_change(*slots, generation);
  } while (!change && base::has_later_place_change(*slots, generation));
  if (change) {
    for (const auto& [name, value] : change->variables) {
      environment[name] = value;
    }
    place = comm::place_from_environment(environment);
    if (!change->store_secret.empty()) {
      place.store_secret = change->store_secret;
    }
    status.set_place(place.rank, place.world_size);
  }
  place.generation = generation;
  place.round = 0;
}

void World::Impl::disconnect() {
  let_go();
  group.reset();
  device_exchange.reset();
  control.reset();
  arena.reset();
  barrier.reset();
  store.reset();
  if (interrupts) interrupts->closed_store();
}

void World::Impl::let_go() {
  if (interrupts) interrupts->let_go();
}

// Kernels that wait for a rank which has let go end only when this one lets go,
// too. Nothing on the device tells of it, but the store does.
comm::WatchedDevice World::Impl::watched_device() const {
  if (device_exchange == nullptr) return {};
  return {.exchange = device_exchange, .has_one_let_go = [store = store] {
            try {
              return store->check({kComeKey});
            } catch (const std::exception&) {
              return false;  // The store or a rank is gone: others tell.
            }
          }};
}

// Not by synchronizing: an exchange that is aborted meanwhile needs CUDA, too.
void World::Impl::wait_for_device() {
  constexpr std::chrono::microseconds kPause{50};
  require_open();
  const tensor::DeviceEvent event = tensor::record_event();
  while (!tensor::is_done(event)) std::this_thread::sleep_for(kPause);
  if (!has_lost_ranks()) return;
  throw PeerError(fmt::format(
      "rank {} lost another rank in an exchange between GPUs", place.rank));
}

bool World::Impl::wait_for_generation() const {
  int64_t begin = base::monotonic_ns();
  while (recovery.generation() == place.generation) {
    if (recovery.is_suspended()) begin = base::monotonic_ns();
    if (base::seconds_between(begin, base::monotonic_ns()) >
        kReplacementSeconds) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool World::Impl::has_key(const std::string& key) const {
  try {
    return store->check({key});
  } catch (const std::exception&) {
    return false;  // The store tells that a rank was replaced.
  }
}

// A launcher that replaces ranks does so at once. Ranks that live come when
// they are done with what they compute, if one has asked for it.
bool World::Impl::wait_for_all_or_generation() {
  if (store == nullptr || recovery.is_suspended()) return wait_for_generation();
  try {
    if (recovery.take_request_to_all()) store->set(kAskedKey, "");
    if (store->add(kComeKey, 1) == place.world_size) store->set(kAllKey, "");
  } catch (const std::exception&) {
    return wait_for_generation();
  }
  const int64_t begin = base::monotonic_ns();
  while (recovery.generation() == place.generation) {
    if (recovery.is_suspended()) return wait_for_generation();
    if (has_key(kAllKey)) {
      ++place.round;
      return true;
    }
    const double waited = base::seconds_between(begin, base::monotonic_ns());
    if (waited > kReplacementSeconds &&
        (!has_key(kAskedKey) ||
         waited > std::chrono::duration<double>(timeout).count())) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void World::Impl::exchange_states() {
  if (is_alone()) {
    ranks_without_state.assign(recovery.is_ready() ? 0 : 1, 0);
    return;
  }
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
  if (!can_reform()) return;
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
  if (!can_reform()) {
    throw ConfigError(
        "World::reform(): only in a job started with --recover memory");
  }
  status.set_phase(base::Phase::kConnecting);
  // By this the others learn of it.
  let_go();
  group.reset();
  control.reset();
  arena.reset();
  const bool goes_on = wait_for_all_or_generation();
  disconnect();
  if (!goes_on) {
    throw PeerError(fmt::format(
        "rank {} lost another rank, and none was replaced", place.rank));
  }
  status.restart_collectives();
  connect();
  status.set_phase(base::Phase::kReady);
}

bool World::can_reform() const { return impl_->can_reform(); }

bool World::can_reform_after(const std::exception& error) const {
  return impl_->can_reform() &&
         (comm::is_peer_loss(error) || impl_->has_lost_ranks());
}

bool World::must_reform() const {
  return impl_->interrupts != nullptr && impl_->interrupts->is_interrupted();
}

bool World::has_lost_ranks() const { return impl_->has_lost_ranks(); }

void World::wait_for_device() const { impl_->wait_for_device(); }

void World::let_go() const { impl_->let_go(); }

void World::offer_state() const { impl_->recovery.set_ready(); }

void World::reform() const { impl_->reform(); }

void World::withdraw_state() const { impl_->withdraw_state(); }

const std::vector<int>& World::ranks_without_state() const {
  return impl_->ranks_without_state;
}

}  // namespace lockstep
