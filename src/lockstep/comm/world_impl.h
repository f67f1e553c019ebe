// The state behind a World. Private to comm/.
#pragma once

#include <functional>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/recovery_page.h"
#include "lockstep/base/slot_file.h"
#include "lockstep/base/status.h"
#include "lockstep/comm/device_exchange.h"
#include "lockstep/comm/interrupt_watch.h"
#include "lockstep/comm/place.h"
#include "lockstep/comm/shared_exchange.h"
#include "lockstep/comm/store_barrier.h"
#include "lockstep/world.h"

namespace lockstep {

struct World::Impl {
  comm::Place place;
  c10::Device device{c10::DeviceType::CPU};
  std::chrono::milliseconds timeout{0};
  base::StatusWriter status;
  std::string address;  // This host's, for Gloo and NCCL.
  // Empty in a world of one, as is `control`.
  c10::intrusive_ptr<c10d::Store> store;
  std::optional<comm::StoreBarrier> barrier;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::Backend> control;
  std::shared_ptr<comm::SharedArena> arena;  // Null where no memory is shared.
  bool closed = false;
  base::Environment environment;
  // Recovery from memory; no value and private pages without it.
  std::optional<base::SlotFile> slots;
  base::RecoveryWriter recovery;
  // Null unless can_reform().
  std::unique_ptr<comm::InterruptWatch> interrupts;
  // Gloo's, likewise.
  std::shared_ptr<comm::OpenCollectives> collectives;
  // NCCL's, likewise; null without GPUs, too.
  std::shared_ptr<comm::DeviceExchange> device_exchange;
  std::shared_ptr<comm::GlooEnds> ends = std::make_shared<comm::GlooEnds>();
  std::vector<int> ranks_without_state;

  ~Impl();
  // Once more as long as ranks die meanwhile.
  void connect();
  void connect_once();
  void disconnect();
  void wait_while_suspended();
  void follow_launcher();
  void reform();
  // False: the launcher has replaced no rank for a while.
  bool wait_for_generation() const;
  // In reform(): until the launcher has replaced ranks, or all have come.
  bool wait_for_all_or_generation();
  bool has_key(const std::string& key) const;
  void let_go();
  comm::WatchedDevice watched_device() const;
  void wait_for_device();
  void exchange_states();
  void withdraw_state();
  // Whether ranks were replaced since this one connected.
  std::function<bool()> is_outdated() const;
  std::chrono::milliseconds connect_timeout() const;
  void connect_cpu(comm::ExchangeChoice choice);
  void connect_machines(const comm::ExchangeOutcome& exchange,
                        const c10::intrusive_ptr<c10d::Backend>& gloo);
  void connect_nccl();
  c10::intrusive_ptr<c10d::Backend> connect_gloo(
      const std::string& name, const std::optional<base::StatusWriter>& noted,
      const comm::Place& members) const;
  void close();
  void wait_at_barrier(std::chrono::milliseconds wait);
  // One collective on the CPU channel: noted on the status page, errors
  // explained.
  void on_control(base::Collective kind, int64_t bytes,
                  const std::function<void()>& call);
  at::Tensor reduce(const at::Tensor& value, ReduceOp op);

  // Throws ConfigError after close().
  void require_open() const;

  bool can_reform() const { return slots.has_value(); }
  bool has_lost_ranks() const {
    return device_exchange != nullptr && device_exchange->is_aborted();
  }
  bool is_alone() const { return place.world_size == 1; }

  // "all_reduce #12 (25.0 MiB) on rank 0 of 2"
  std::string describe(base::Collective kind, int64_t bytes) const;
};

}  // namespace lockstep
