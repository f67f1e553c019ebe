#include "lockstep/world.h"

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/debug.h>

#include <csignal>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "lockstep/base/slot_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/task_place.h"
#include "lockstep/comm/explain.h"
#include "lockstep/comm/gloo_backend.h"
#include "lockstep/comm/hierarchical_backend.h"
#include "lockstep/comm/loopback_backend.h"
#include "lockstep/comm/nccl_backend.h"
#include "lockstep/comm/network.h"
#include "lockstep/comm/rendezvous.h"
#include "lockstep/comm/shared_backend.h"
#include "lockstep/comm/shared_exchange.h"
#include "lockstep/comm/vote.h"
#include "lockstep/comm/vote_channel.h"
#include "lockstep/comm/world_impl.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device.h"

namespace lockstep {
namespace {

using c10d::ProcessGroup;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// A rank that leaves waits this long for the others before it closes its side.
constexpr std::chrono::seconds kDepartureTimeout{5};

// A rank that died shall be an error of a collective, as in Python, which
// ignores this signal, and not the end of those that write to it.
void ignore_broken_pipes() {
  struct sigaction action{};
  sigaction(SIGPIPE, nullptr, &action);
  if (action.sa_handler != SIG_DFL) return;
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

// Lets libtorch's Reducer take its buckets from the backend. Only where no GPU
// is used: NCCL would register the memory of every bucket.
void take_buckets_from_backend() {
  constexpr int kKeepValue = 0;
  setenv("DDP_DISABLE_COMM_MEM", "0", kKeepValue);
}

// NCCL reads it when its first communicator is made, and would otherwise take
// the first interface that is not loopback or docker's.
void name_interface_for_nccl(const std::string& name) {
  constexpr int kKeepValue = 0;
  if (!name.empty()) setenv("NCCL_SOCKET_IFNAME", name.c_str(), kKeepValue);
}

// Where a lost rank is survived, DeviceExchange ends collectives. libtorch's
// watchdog would throw on its own thread, which ends the process, its monitor
// would end the process outright, and both would first wait a minute for a
// report while they hold what the training needs.
void keep_watchdog_from_ending_process() {
  constexpr const char* kOff = "0";
  constexpr int kReplaceValue = 1;
  for (const char* name :
       {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ENABLE_MONITORING",
        "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC",
        "TORCH_NCCL_PROPAGATE_ERROR", "TORCH_NCCL_RETHROW_CUDA_ERRORS"}) {
    const char* value = std::getenv(name);
    // Once: other threads may read the environment later.
    if (value == nullptr || std::string_view(value) != kOff) {
      setenv(name, kOff, kReplaceValue);
    }
  }
}

// A batch script of Slurm that forgot srun trains on one process.
void warn_of_missing_srun(const base::Environment& environment) {
  if (base::find(environment, "RANK")) return;
  const std::string reason = base::not_a_task_reason(environment);
  if (!reason.empty()) {
    TORCH_WARN(reason);
  }
}

double seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) * 1e-3;
}

std::chrono::milliseconds timeout_of(const WorldConfig& config,
                                     const base::Environment& environment) {
  if (config.timeout) {
    const double asked = seconds(*config.timeout);
    if (!(asked > 0 && asked <= base::kLongestTimeoutSeconds)) {
      throw ConfigError(
          fmt::format("WorldConfig::timeout is {} s; it must be above 0 and at "
                      "most 30 days",
                      asked));
    }
    return *config.timeout;
  }
  return std::chrono::milliseconds(static_cast<int64_t>(
      base::collective_timeout_seconds(environment) * 1e3));
}

// Python's import of torch does this; a C++ program has to.
void honour_torch_variables() {
  c10d::setDebugLevelFromEnvironment();
  c10::initLogging();
}

void add_backend(ProcessGroup& group, c10::DeviceType device,
                 ProcessGroup::BackendType type, const BackendPtr& backend) {
  backend->setSequenceNumberForGroup();
  group.setBackend(device, type, backend);
}

c10::intrusive_ptr<ProcessGroup> make_group_of_one() {
  auto group = c10::make_intrusive<ProcessGroup>(
      c10::make_intrusive<c10d::HashStore>(), /*rank=*/0, /*size=*/1);
  const auto type = ProcessGroup::BackendType::CUSTOM;
  group->setDefaultBackend(type);
  const auto backend = comm::make_loopback_backend();
  add_backend(*group, c10::DeviceType::CPU, type, backend);
  add_backend(*group, c10::DeviceType::CUDA, type, backend);
  group->setGroupName("lockstep");
  return group;
}

std::string with_nccl_error(const std::string& text) {
  const std::string last = comm::last_nccl_error();
  return last.empty() ? text : text + "; NCCL reports: " + last;
}

BackendPtr add_nccl(ProcessGroup& group, const comm::NcclRequest& request) {
  try {
    const auto backend = comm::make_nccl_backend(request);
    add_backend(group, c10::DeviceType::CUDA, ProcessGroup::BackendType::NCCL,
                backend);
    backend->eagerConnectSingleDevice(request.device);
    return backend;
  } catch (const std::exception& error) {
    const std::runtime_error explained(
        with_nccl_error(comm::error_text(error)));
    comm::throw_explained(
        explained,
        fmt::format("connecting NCCL on rank {} of {} ({})", request.place.rank,
                    request.place.world_size, request.device.str()));
  }
}

}  // namespace

World World::from_environment(const WorldConfig& config) {
  return from_environment(config, base::process_environment());
}

World World::from_environment(const WorldConfig& config,
                              const base::Environment& environment) {
  honour_torch_variables();
  auto impl = std::make_shared<Impl>();
  impl->status = base::StatusWriter::from_environment(environment);
  impl->place = comm::place_from_environment(environment);
  impl->timeout = timeout_of(config, environment);
  const comm::Place& place = impl->place;
  impl->status.set_place(place.rank, place.world_size);
  impl->status.set_timeout(seconds(impl->timeout));
  impl->status.set_phase(base::Phase::kConnecting);
  impl->device =
      tensor::take_device(config.device, place.local_rank, environment);
  impl->environment = environment;
  impl->recovery = base::RecoveryWriter::from_environment(environment);
  impl->slots = base::SlotFile::from_environment(environment);
  if (impl->can_reform()) {
    impl->interrupts = std::make_unique<comm::InterruptWatch>(impl->recovery);
  }
  impl->connect();
  impl->status.set_memory(tensor::host_memory_in_use(),
                          tensor::device_memory_in_use(impl->device));
  impl->status.set_phase(base::Phase::kReady);
  return World(std::move(impl));
}

void World::Impl::connect_once() {
  if (is_alone()) {
    warn_of_missing_srun(environment);
    group = make_group_of_one();
    return;
  }
  ignore_broken_pipes();
  // Before the ranks meet: rank 0 may take the store with it.
  if (const auto names = base::find(environment, "GLOO_SOCKET_IFNAME")) {
    comm::require_interfaces(*names, "GLOO_SOCKET_IFNAME");
  }
  const comm::ExchangeChoice choice = comm::exchange_choice(environment);
  if (interrupts) interrupts->opening_store();
  store = comm::open_store(place, timeout, is_outdated());
  if (interrupts) {
    interrupts->opened_store();
    collectives = std::make_shared<comm::OpenCollectives>();
    interrupts->connecting(place.generation, collectives);
  }
  comm::exchange_peers(
      *store, place,
      {.device_identity = tensor::device_identity(device),
       .may_share_device = base::find(environment, "LOCKSTEP_SHARE_GPUS") ||
                           base::find(environment, "NCCL_HOSTID")},
      timeout);
  address = comm::choose_address(*store, place);
  barrier.emplace(*store, place.rank, place.world_size);
  group = c10::make_intrusive<ProcessGroup>(
      c10::make_intrusive<c10d::PrefixStore>("data", store), place.rank,
      place.world_size);
  if (device.is_cuda()) group->setBoundDeviceId(device);
  connect_cpu(choice);
  if (device.is_cuda()) {
    connect_nccl();
  }
  group->setGroupName("lockstep");
  if (interrupts) interrupts->connected(watched_device());
}

void World::Impl::connect_nccl() {
  name_interface_for_nccl(comm::nccl_interface(address, environment));
  if (can_reform()) keep_watchdog_from_ending_process();
  group->setDefaultBackend(ProcessGroup::BackendType::NCCL);
  const BackendPtr backend = add_nccl(*group, {.store = store,
                                               .place = place,
                                               .device = device,
                                               .timeout = timeout,
                                               .status = status});
  if (can_reform()) {
    device_exchange = std::make_shared<comm::DeviceExchange>(backend);
  }
}

void World::Impl::connect_cpu(comm::ExchangeChoice choice) {
  comm::ExchangeOutcome exchange;
  if (!device.is_cuda()) {
    exchange =
        comm::connect_shared_memory(store, place,
                                    {.choice = choice,
                                     .machine = comm::machine_name(environment),
                                     .timeout = connect_timeout()});
  }
  const BackendPtr gloo = connect_gloo("gloo", status, place);
  if (exchange.machines) {
    connect_machines(exchange, gloo);
    return;
  }
  if (exchange.arena == nullptr) {
    if (!exchange.problem.empty() && place.rank == 0) {
      TORCH_WARN("tensors are exchanged over Gloo, not through shared memory: ",
                 exchange.problem);
    }
    // libtorch casts a backend of the type GLOO to its own class.
    const auto type = can_reform() ? ProcessGroup::BackendType::CUSTOM
                                   : ProcessGroup::BackendType::GLOO;
    group->setDefaultBackend(type);
    add_backend(*group, c10::DeviceType::CPU, type, gloo);
    control = connect_gloo("control", std::nullopt, place);
    return;
  }
  arena = exchange.arena;
  take_buckets_from_backend();
  // Not of type GLOO: libtorch casts a backend of that type to its own class.
  group->setDefaultBackend(ProcessGroup::BackendType::CUSTOM);
  comm::SharedBackendConfig shared{.arena = exchange.arena,
                                   .channel = 0,
                                   .timeout = timeout,
                                   .gloo = gloo,
                                   .status = status,
                                   .notes_collectives = true};
  add_backend(*group, c10::DeviceType::CPU, ProcessGroup::BackendType::CUSTOM,
              comm::make_shared_backend(shared));
  shared.channel = 1;
  shared.notes_collectives = false;
  control = comm::make_shared_backend(shared);
}

void World::Impl::connect_machines(const comm::ExchangeOutcome& exchange,
                                   const BackendPtr& gloo) {
  comm::HierarchicalBackendConfig config{.rank = place.rank,
                                         .machines = *exchange.machines,
                                         .arena = exchange.arena,
                                         .gloo = gloo,
                                         .timeout = timeout,
                                         .status = status};
  if (config.machines.is_leader(place.rank)) {
    comm::Place among_leaders = place;
    among_leaders.rank = config.machines.machine_of(place.rank);
    among_leaders.world_size = config.machines.count();
    config.leaders = connect_gloo("leaders", std::nullopt, among_leaders);
  }
  take_buckets_from_backend();
  group->setDefaultBackend(ProcessGroup::BackendType::CUSTOM);
  add_backend(*group, c10::DeviceType::CPU, ProcessGroup::BackendType::CUSTOM,
              comm::make_hierarchical_backend(config));
  control = connect_gloo("control", std::nullopt, place);
}

BackendPtr World::Impl::connect_gloo(
    const std::string& name, const std::optional<base::StatusWriter>& noted,
    const comm::Place& members) const {
  try {
    const BackendPtr gloo = comm::make_gloo_backend(
        store, members,
        {.name = name,
         .timeout = timeout,
         .connect_timeout = place.generation == 0 ? std::chrono::milliseconds(0)
                                                  : connect_timeout(),
         .interfaces = base::find(environment, "GLOO_SOCKET_IFNAME"),
         .address = address,
         .status = noted});
    return can_reform() ? comm::make_interruptible(gloo, collectives, ends)
                        : gloo;
  } catch (const std::exception& error) {
    comm::throw_explained(error, fmt::format("connecting Gloo on rank {} of {}",
                                             place.rank, place.world_size));
  }
}

void World::Impl::close() {
  if (std::exchange(closed, true)) return;
  status.set_phase(base::Phase::kClosing);
  recovery.end(place.generation);
  if (!is_alone() && barrier) {
    // Whoever hosts the store leaves last; the others do not depend on its
    // answer.
    try {
      barrier->leave(std::min<std::chrono::milliseconds>(
          timeout, std::chrono::milliseconds(kDepartureTimeout)));
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // The host has left already: nothing is lost.
    }
    if (device.is_cuda() && group && !has_lost_ranks()) group->shutdown();
  }
  status.set_phase(base::Phase::kDone);
}

World::Impl::~Impl() {
  try {
    // While an error is thrown the others may never come: only let go.
    if (std::uncaught_exceptions() == 0) {
      close();
    } else if (!closed && device.is_cuda() && group && !has_lost_ranks()) {
      group->abort();
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): a destructor.
  }
}

void World::Impl::require_open() const {
  if (!closed) return;
  throw ConfigError(
      "a collective after World::close(): call close() after the last "
      "collective");
}

std::string World::Impl::describe(base::Collective kind, int64_t bytes) const {
  return fmt::format("{} #{} ({}) on rank {} of {}",
                     base::collective_name(kind), status.collectives_started(),
                     base::bytes_text(bytes), place.rank, place.world_size);
}

int World::rank() const { return impl_->place.rank; }
int World::size() const { return impl_->place.world_size; }
int World::local_rank() const { return impl_->place.local_rank; }
int World::local_size() const { return impl_->place.local_world_size; }
c10::Device World::device() const { return impl_->device; }
std::chrono::milliseconds World::timeout() const { return impl_->timeout; }
base::StatusWriter& World::status() const { return impl_->status; }
void World::close() const { impl_->close(); }

const c10::intrusive_ptr<c10d::ProcessGroup>& World::group() const {
  return impl_->group;
}

const std::shared_ptr<comm::SharedArena>& World::shared_arena() const {
  return impl_->arena;
}

comm::Vote World::make_vote() const {
  return comm::Vote(std::make_shared<comm::Vote::Channel>(comm::Vote::Channel{
      .backend = impl_->control, .rank = rank(), .status = impl_->status}));
}

void World::barrier(std::optional<std::chrono::milliseconds> limit) const {
  impl_->require_open();
  if (impl_->is_alone()) return;
  const auto wait = limit.value_or(impl_->timeout);
  // The launcher ends a rank that waits longer than it announced.
  impl_->status.set_timeout(seconds(wait));
  const int64_t number =
      impl_->status.start_collective(base::Collective::kBarrier, 0);
  try {
    impl_->wait_at_barrier(wait);
  } catch (...) {
    impl_->status.fail_collective(number);
    throw;
  }
  impl_->status.finish_collective();
  impl_->status.set_timeout(seconds(impl_->timeout));
}

void World::Impl::wait_at_barrier(std::chrono::milliseconds wait) {
  const auto absent = barrier->arrive_and_wait(wait);
  const std::string here = describe(base::Collective::kBarrier, 0);
  if (!absent.left.empty()) {
    throw PeerError(fmt::format(
        "{}: rank(s) {} have left and will not arrive; every rank must "
        "call barrier() the same number of times",
        here, fmt::join(absent.left, ", ")));
  }
  if (absent.store_lost) {
    throw PeerError(fmt::format(
        "{0}: {1} ended while this rank waited for rank(s) {2}; look for the "
        "first error of {1}",
        here, comm::store_host(place), fmt::join(absent.late, ", ")));
  }
  if (!absent.late.empty()) {
    throw TimeoutError(fmt::format(
        "{}: rank(s) {} did not arrive within {}; --timeout SECONDS, "
        "TORCH_DISTRIBUTED_TIMEOUT and NCCL_TIMEOUT set the limit",
        here, fmt::join(absent.late, ", "),
        base::duration_text(seconds(wait))));
  }
}

}  // namespace lockstep
