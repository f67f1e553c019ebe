#include "lockstep/comm/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/comm/client_store.h"
#include "lockstep/comm/network.h"
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
  std::string address;  // local_address_towards(MASTER_ADDR)
};

constexpr char kSeparator = '\n';
// For what another rank is about to write.
constexpr std::chrono::seconds kPatience{5};

std::string limit_text(std::chrono::milliseconds limit) {
  return base::duration_text(std::chrono::duration<double>(limit).count());
}

std::string record_key(int rank) { return fmt::format("record/{}", rank); }

std::string to_text(const Record& record) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", record.world_size, record.host,
                     record.pid, record.device, record.address);
}

std::string as_text(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

Record read_record(c10d::Store& store, int rank) {
  const auto parts =
      base::split(as_text(store.get(record_key(rank))), kSeparator);
  LOCKSTEP_CHECK(parts.size() == 5, "record of a rank in the store");
  return {static_cast<int>(base::parse_integer(parts[0]).value_or(0)), parts[1],
          parts[2], parts[3], parts[4]};
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
  keys.reserve(ranks.size());
  for (const int rank : ranks) keys.push_back(record_key(rank));
  const Missing missing = wait_for_keys(store, keys, timeout);
  if (missing.positions.empty()) return;
  std::vector<int> missing_ranks;
  missing_ranks.reserve(missing.positions.size());
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
      place.rank, place.world_size, limit_text(timeout),
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
// that machine alone, and one of several to the network that it uses.
// Everywhere where the others must know MASTER_ADDR by another address than
// this host does.
std::vector<net::SocketAddress> addresses_of_host(const Place& place,
                                                  int port) {
  auto addresses = net::resolve_master(place.master_addr, port);
  if (place.is_one_machine()) return addresses;
  std::erase_if(addresses, [](const auto& a) { return a.is_loopback(); });
  addresses.push_back(net::any_address(port));
  return addresses;
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
  return std::make_shared<HostedStore>(
      listen_for_ranks(place),
      net::StoreServerConfig{.admission = place.is_one_machine()
                                              ? net::Admission::kOwnUser
                                              : net::Admission::kEveryone,
                             .secret = place.store_secret.value_or("")});
}

// The name of a pod exists from its start on.
void wait_for_name(const Place& place, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{500};
  const auto deadline = Clock::now() + timeout;
  while (net::resolve(place.master_addr, place.master_port).addresses.empty()) {
    if (Clock::now() + kPause > deadline) {
      throw TimeoutError(fmt::format(
          "rank {} of {} could not resolve MASTER_ADDR='{}' within {}: the pod "
          "of rank 0 did not start, or the Job, its headless Service and the "
          "pods' 'subdomain' do not have the names in MASTER_ADDR; see "
          "'kubectl get pods,services'",
          place.rank, place.world_size, place.master_addr,
          limit_text(timeout)));
    }
    std::this_thread::sleep_for(kPause);
  }
}

// Null also when another user listens there: rank 0 has taken the next port.
std::unique_ptr<net::StoreClient> try_store(
    const net::StoreClientConfig& config) {
  try {
    return net::StoreClient::connect(config);
  } catch (const ConfigError&) {
    return nullptr;
  }
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
  // What is proved there is a scheduler's name of the job, or a secret made for
  // this store alone, which opens nothing else.
  if (!place.is_one_machine()) {
    config.allowed_host = net::StoreClientConfig::Host::kOtherMachine;
  }
  // A torchrun of another user may have started this process.
  if (place.launcher_hosts_store && !place.store_secret) {
    config.allowed_host = net::StoreClientConfig::Host::kAnyone;
  }
  if (place.store_ports.size() <= 1) return net::StoreClient::connect(config);
  config.search_timeout = std::chrono::milliseconds(0);
  const auto deadline = Clock::now() + timeout;
  // Looked up once.
  const auto addresses =
      net::resolve_master(place.master_addr, place.master_port);
  while (Clock::now() < deadline) {
    for (const net::SocketAddress& address : addresses) {
      config.host = address.text();
      for (const int port : place.store_ports) {
        config.port = port;
        if (auto client = try_store(config)) {
          place.master_port = port;
          return client;
        }
      }
    }
    std::this_thread::sleep_for(kPause);
  }
  return nullptr;
}

}  // namespace

c10::intrusive_ptr<c10d::Store> open_store(
    Place& place, std::chrono::milliseconds timeout,
    const std::function<bool()>& is_outdated) {
  if (place.name_comes_later) wait_for_name(place, timeout);
  std::shared_ptr<HostedStore> host;
  if (place.rank == 0 && !place.launcher_hosts_store) host = host_store(place);
  auto client = find_store(place, timeout);
  if (client == nullptr) {
    throw TimeoutError(fmt::format(
        "rank {} of {} could not connect to {}:{} within {}: {} did not start, "
        "ended, or MASTER_ADDR and MASTER_PORT are not the same for all. "
        "--timeout, TORCH_DISTRIBUTED_TIMEOUT and NCCL_TIMEOUT set the limit",
        place.rank, place.world_size, place.master_addr, place.master_port,
        limit_text(timeout), store_host(place)));
  }
  // Keys under lockstep/ are only for ranks that know the secret.
  const char* prefix = place.store_secret ? "lockstep" : "ranks";
  return c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("{}/{}.{}.{}", prefix, place.attempt, place.generation,
                  place.round),
      c10::make_intrusive<ClientStore>(std::move(client), std::move(host),
                                       is_outdated));
}

void exchange_peers(c10d::Store& store, const Place& place,
                    const PeerTable& peers, std::chrono::milliseconds timeout) {
  const Record own{place.world_size, base::host_name(),
                   std::to_string(getpid()), peers.device_identity,
                   local_address_towards(place.master_addr, place.master_port)};
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

std::string choose_address(c10d::Store& store, const Place& place) {
  std::string own = read_record(store, place.rank).address;
  if (place.is_one_machine() || !is_loopback_address(own)) return own;
  for (int rank = 0; rank < place.world_size; ++rank) {
    const std::string other = read_record(store, rank).address;
    if (is_loopback_address(other)) continue;
    return local_address_towards(other, place.master_port);
  }
  return own;
}

}  // namespace lockstep::comm
