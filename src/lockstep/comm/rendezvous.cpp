#include "lockstep/comm/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/comm/client_store.h"
#include "lockstep/comm/store_barrier.h"
#include "lockstep/error.h"
#include "lockstep/net/address.h"

namespace lockstep::comm {
namespace {

// What each rank writes into the store about itself.
struct Record {
  int world_size = 0;
  std::string host;
  std::string pid;
  std::string device;
};

constexpr char kSeparator = '\n';
// For what another rank is about to write.
constexpr std::chrono::seconds kPatience{5};

std::string record_key(int rank) { return fmt::format("record/{}", rank); }

std::string to_text(const Record& record) {
  return fmt::format("{}\n{}\n{}\n{}", record.world_size, record.host,
                     record.pid, record.device);
}

std::string as_text(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

Record read_record(c10d::Store& store, int rank) {
  const auto parts =
      base::split(as_text(store.get(record_key(rank))), kSeparator);
  LOCKSTEP_CHECK(parts.size() == 4, "record of a rank in the store");
  return {static_cast<int>(base::parse_integer(parts[0]).value_or(0)), parts[1],
          parts[2], parts[3]};
}

std::string claimant_key(int rank) { return fmt::format("claimant/{}", rank); }

void claim_rank(c10d::Store& store, const Place& place, const Record& record) {
  const std::string self = record.pid + " on " + record.host;
  if (store.add(fmt::format("claims/{}", place.rank), 1) == 1) {
    store.set(claimant_key(place.rank), self);
    return;
  }
  // The first one is about to write its name.
  const bool has_name =
      wait_for_keys(store, {claimant_key(place.rank)}, kPatience)
          .positions.empty();
  const std::string first =
      has_name ? as_text(store.get(claimant_key(place.rank))) : "another";
  if (first == self) {
    throw ConfigError(
        "World::from_environment() was called twice in this process: keep the "
        "first World and copy it");
  }
  throw ConfigError(fmt::format(
      "two processes claim rank {} of {}: pid {} and pid {}; give every "
      "process "
      "its own RANK from 0 to {}",
      place.rank, place.world_size, first, self, place.world_size - 1));
}

void wait_for_records(c10d::Store& store, const Place& place,
                      const std::vector<int>& ranks,
                      std::chrono::milliseconds timeout) {
  std::vector<std::string> keys;
  for (const int rank : ranks) keys.push_back(record_key(rank));
  const Missing missing = wait_for_keys(store, keys, timeout);
  if (missing.positions.empty()) return;
  std::vector<int> missing_ranks;
  for (const int index : missing.positions) {
    missing_ranks.push_back(ranks[index]);
  }
  if (missing.store_lost) {
    throw PeerError(fmt::format(
        "{0} ended while rank {1} of {2} waited for rank(s) {3} to connect to "
        "{4}:{5}; look for the first error of {0}",
        store_host(place), place.rank, place.world_size,
        fmt::join(missing_ranks, ", "), place.master_addr, place.master_port));
  }
  throw TimeoutError(fmt::format(
      "rank {} of {} waited {} for rank(s) {} to connect to {}:{}; start them, "
      "or "
      "look for their own errors above. --timeout, TORCH_DISTRIBUTED_TIMEOUT "
      "and NCCL_TIMEOUT set the limit",
      place.rank, place.world_size, base::duration_text(timeout.count() * 1e-3),
      fmt::join(missing_ranks, ", "), place.master_addr, place.master_port));
}

void compare_world_sizes(const Place& place, int other, const Record& record) {
  if (record.world_size == place.world_size) return;
  throw ConfigError(fmt::format(
      "rank {} has WORLD_SIZE={} but rank {} (pid {} on {}) has WORLD_SIZE={}; "
      "set the same value for every process",
      place.rank, place.world_size, other, record.pid, record.host,
      record.world_size));
}

void refuse_shared_device(const Place& place, const Record& own, int other,
                          const Record& record) {
  if (own.device.empty() || record.device != own.device ||
      record.host != own.host) {
    return;
  }
  throw DeviceError(fmt::format(
      "ranks {} and {} on {} both use the same GPU (Duplicate GPU detected): "
      "start one process per GPU with its own LOCAL_RANK, or pass --share-gpus "
      "to lockstep run",
      std::min(place.rank, other), std::max(place.rank, other), own.host));
}

void compare_with_all(c10d::Store& store, const Place& place, const Record& own,
                      const PeerTable& peers) {
  for (int rank = 0; rank < place.world_size; ++rank) {
    if (rank == place.rank) continue;
    const Record record = read_record(store, rank);
    compare_world_sizes(place, rank, record);
    if (!peers.may_share_device) {
      refuse_shared_device(place, own, rank, record);
    }
  }
}

std::string compared_key(int rank) { return fmt::format("compared/{}", rank); }

// The store may go with rank 0: ranks that have connected shall report the same
// difference, and not a broken connection.
void wait_until_compared(c10d::Store& store, const Place& place) {
  std::vector<std::string> keys;
  for (int rank = 1; rank < place.world_size; ++rank) {
    if (store.check({record_key(rank)})) keys.push_back(compared_key(rank));
  }
  if (!keys.empty()) wait_for_keys(store, keys, kPatience);
}

std::vector<int> ports_to_try(const Place& place) {
  if (!place.store_ports.empty()) return place.store_ports;
  return {place.master_port};
}

// Where rank 0 listens: at MASTER_ADDR, so that a job of one machine is open to
// that machine alone; everywhere for a job of several.
std::vector<net::SocketAddress> addresses_of_host(const Place& place,
                                                  int port) {
  if (place.local_world_size < place.world_size)
    return {net::any_address(port)};
  return net::resolve_master(place.master_addr, port);
}

base::FileDescriptor listen_for_ranks(Place& place) {
  int reason = EADDRNOTAVAIL;
  for (const int port : ports_to_try(place)) {
    for (const net::SocketAddress& address : addresses_of_host(place, port)) {
      base::FileDescriptor listener =
          net::listen_at(address, net::PortUse::kReuse);
      if (listener) {
        place.master_port = port;
        place.store_ports = {port};
        return listener;
      }
      reason = errno;
    }
  }
  if (reason == EADDRNOTAVAIL) {
    throw ConfigError(fmt::format(
        "MASTER_ADDR='{}' is not an address of this machine, on which rank 0 "
        "runs; set it to one, for all ranks",
        place.master_addr));
  }
  errno = reason;
  throw ConfigError(fmt::format(
      "rank 0 cannot listen at {}:{} for the other ranks: {}; another program, "
      "a second process with RANK=0 or a second World of this process listens "
      "there; leave --master-port and MASTER_PORT out (lockstep run then takes "
      "a free one) or choose another",
      place.master_addr, place.master_port, base::errno_text()));
}

std::shared_ptr<HostedStore> host_store(Place& place) {
  const bool is_one_machine = place.local_world_size == place.world_size;
  return std::make_shared<HostedStore>(
      listen_for_ranks(place),
      net::StoreServerConfig{.admission = is_one_machine
                                              ? net::Admission::kOwnUser
                                              : net::Admission::kEveryone,
                             .secret = place.store_secret.value_or("")});
}

// A job with one port is waited for there; among several ports the store of the
// job is found by its name.
std::unique_ptr<net::StoreClient> find_store(
    Place& place, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{20};
  net::StoreClientConfig config{.host = place.master_addr,
                                .port = place.master_port,
                                .search_timeout = timeout,
                                .reply_timeout = timeout,
                                .secret = place.store_secret};
  // A torchrun of another user may have started this process.
  if (place.launcher_hosts_store && !place.store_secret) {
    config.allowed_host = net::StoreClientConfig::Host::kAnyone;
  }
  if (place.store_ports.size() <= 1) return net::StoreClient::connect(config);
  config.search_timeout = std::chrono::milliseconds(0);
  const auto deadline = Clock::now() + timeout;
  while (Clock::now() < deadline) {
    for (const int port : place.store_ports) {
      config.port = port;
      try {
        if (auto client = net::StoreClient::connect(config)) {
          place.master_port = port;
          return client;
        }
      } catch (const ConfigError&) {
        // Another user's; rank 0 has taken the next one.
      }
    }
    std::this_thread::sleep_for(kPause);
  }
  return nullptr;
}

}  // namespace

c10::intrusive_ptr<c10d::Store> open_store(Place& place,
                                           std::chrono::milliseconds timeout) {
  std::shared_ptr<HostedStore> host;
  if (place.rank == 0 && !place.launcher_hosts_store) host = host_store(place);
  auto client = find_store(place, timeout);
  if (client == nullptr) {
    throw TimeoutError(fmt::format(
        "rank {} of {} could not connect to {}:{} within {}: {} did not start, "
        "ended, or MASTER_ADDR and MASTER_PORT are not the same for all. "
        "--timeout, TORCH_DISTRIBUTED_TIMEOUT and NCCL_TIMEOUT set the limit",
        place.rank, place.world_size, place.master_addr, place.master_port,
        base::duration_text(timeout.count() * 1e-3), store_host(place)));
  }
  // Keys under lockstep/ are only for ranks that know the secret.
  const char* prefix = place.store_secret ? "lockstep" : "ranks";
  return c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("{}/{}", prefix, place.attempt),
      c10::make_intrusive<ClientStore>(std::move(client), std::move(host)));
}

void exchange_peers(c10d::Store& store, const Place& place,
                    const PeerTable& peers, std::chrono::milliseconds timeout) {
  const Record own{place.world_size, base::host_name(),
                   std::to_string(getpid()), peers.device_identity};
  claim_rank(store, place, own);
  store.set(record_key(place.rank), to_text(own));
  // Rank 0 first: a wrong world size shows before waiting for ranks that never
  // come.
  wait_for_records(store, place, {0}, timeout);
  const auto compare = [&] {
    compare_world_sizes(place, 0, read_record(store, 0));
    std::vector<int> ranks(place.world_size);
    for (int rank = 0; rank < place.world_size; ++rank) ranks[rank] = rank;
    wait_for_records(store, place, ranks, timeout);
    compare_with_all(store, place, own, peers);
  };
  try {
    compare();
  } catch (const PeerError&) {
    throw;
  } catch (const Error&) {
    store.set(compared_key(place.rank), "");
    if (place.rank == 0) wait_until_compared(store, place);
    throw;
  }
  store.set(compared_key(place.rank), "");
}

}  // namespace lockstep::comm
