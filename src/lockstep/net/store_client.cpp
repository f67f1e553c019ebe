#include "lockstep/net/store_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/net/address.h"
#include "lockstep/net/socket_owner.h"
#include "lockstep/net/store_engine.h"

namespace lockstep::net {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{2};
constexpr milliseconds kLongestPause{100};
// A store answers at once, unless its machine is overloaded; something else
// that accepts may never do.
constexpr milliseconds kHandshake{30000};
constexpr milliseconds kHandshakeOfOneTry{2000};
// A store that closes a new connection may be one that is just ending.
constexpr milliseconds kRefusal{5000};

milliseconds until(Clock::time_point deadline) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(
                                       deadline - Clock::now()));
}

bool wait_for_events(int socket, short events, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (true) {
    pollfd entry{socket, events, 0};
    constexpr int64_t kLongest = 1'000'000'000;
    const int count = poll(
        &entry, 1,
        static_cast<int>(std::min<int64_t>(until(deadline).count(), kLongest)));
    if (count > 0) return true;
    if (count == 0 && Clock::now() >= deadline) return false;
    if (count < 0 && errno != EINTR) return true;  // the next call reports why
  }
}

// No socket when nobody accepts there.
base::FileDescriptor connect_to(const SocketAddress& address,
                                milliseconds timeout) {
  base::FileDescriptor result(
      socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result) return {};
  if (::connect(result.get(), address.get(), address.size) != 0) {
    if (errno != EINPROGRESS ||
        !wait_for_events(result.get(), POLLOUT, timeout)) {
      return {};
    }
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(result.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 ||
        error != 0) {
      return {};
    }
  }
  const int on = 1;
  setsockopt(result.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return result;
}

base::FileDescriptor connect_to_any(const std::vector<SocketAddress>& addresses,
                                    milliseconds timeout) {
  for (const SocketAddress& address : addresses) {
    if (base::FileDescriptor socket = connect_to(address, timeout))
      return socket;
  }
  return {};
}

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

std::string wire_key(const std::string& key) { return "/" + key; }

std::vector<std::string> wire_keys(const std::vector<std::string>& keys) {
  std::vector<std::string> result;
  result.reserve(keys.size());
  for (const std::string& key : keys) result.push_back(wire_key(key));
  return result;
}

}  // namespace

StoreClient::StoreClient(StoreClientConfig config, base::FileDescriptor socket)
    : config_(std::move(config)), socket_(std::move(socket)) {}

std::unique_ptr<StoreClient> StoreClient::connect(
    const StoreClientConfig& config) {
  const auto addresses = resolve_master(config.host, config.port);
  const auto deadline = Clock::now() + config.search_timeout;
  const bool tries_once = config.search_timeout == milliseconds(0);
  std::optional<Clock::time_point> first_refusal;
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    base::FileDescriptor socket =
        connect_to_any(addresses, std::max(until(deadline), kLongestPause));
    if (socket) {
      std::unique_ptr<StoreClient> client(
          new StoreClient(config, std::move(socket)));
      const Handshake handshake =
          client->shake_hands(tries_once ? kHandshakeOfOneTry : kHandshake);
      if (handshake == Handshake::kDone) return client;
      if (tries_once) return nullptr;
      if (handshake == Handshake::kSilent) {
        client->throw_lost("what listens there does not answer as a store");
      }
      if (!first_refusal) first_refusal = Clock::now();
      if (Clock::now() > *first_refusal + kRefusal) {
        client->throw_lost(
            "what listens there closes the connection: it is not a store, or "
            "one of another user or job");
      }
    }
    if (Clock::now() + pause > deadline) return nullptr;
    std::this_thread::sleep_for(pause);
  }
}

StoreClient::Handshake StoreClient::shake_hands(Timeout timeout) {
  const auto nonce = static_cast<uint32_t>(getpid());
  try {
    send({.query = StoreQuery::kValidate, .number = kStoreMagic});
    send({.query = StoreQuery::kPing, .number = nonce});
    if (!wait_for_input(timeout)) return Handshake::kSilent;
    uint32_t reply = 0;
    const std::string bytes = receive(sizeof(reply));
    std::memcpy(&reply, bytes.data(), sizeof(reply));
    if (reply != nonce) return Handshake::kSilent;
    check_host();
    if (config_.secret) prove_secret();
  } catch (const TimeoutError&) {
    return Handshake::kSilent;
  } catch (const PeerError&) {
    return Handshake::kClosed;
  }
  return Handshake::kDone;
}

// After the first reply: before it, nobody holds the socket at the other end.
void StoreClient::check_host() const {
  const auto owner = SocketOwners().owner_of_peer(socket_.get());
  using Host = StoreClientConfig::Host;
  const bool is_other = owner && *owner != geteuid();
  const bool is_secret_safe =
      !config_.secret ||
      (!is_other && (owner || config_.allowed_host == Host::kOtherMachine));
  if ((is_other && config_.allowed_host != Host::kAnyone) || !is_secret_safe) {
    throw ConfigError(fmt::format(
        "port {} of {} (MASTER_PORT, MASTER_ADDR) does not belong to this job: "
        "{} listens there; choose another port, or leave --master-port and "
        "MASTER_PORT out",
        config_.port, config_.host,
        owner ? fmt::format("user {}", *owner) : "another machine"));
  }
}

void StoreClient::prove_secret() {
  send({.query = StoreQuery::kCompareSet,
        .keys = {kProofKey},
        .values = {*config_.secret, ""}});
  if (receive_bytes() != kProofAccepted)
    throw_lost("it belongs to another job");
}

std::string StoreClient::name() const {
  return fmt::format("{}:{}", config_.host, config_.port);
}

void StoreClient::throw_lost(const std::string& reason) const {
  throw PeerError(fmt::format("the store at {} is lost: {}", name(), reason));
}

bool StoreClient::wait_for_input(Timeout timeout) const {
  return wait_for_events(socket_.get(), POLLIN, timeout);
}

void StoreClient::send(const StoreRequest& request) {
  const std::string bytes = encode_request(request);
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(socket_.get(), bytes.data() + sent,
                                 bytes.size() - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (count < 0 && errno == EAGAIN) {
      if (!wait_for_events(socket_.get(), POLLOUT, config_.reply_timeout)) {
        throw TimeoutError(
            fmt::format("the store at {} accepts no requests", name()));
      }
    } else if (count == 0 || errno != EINTR) {
      throw_lost(base::errno_text());
    }
  }
}

std::string StoreClient::receive(size_t size) {
  std::string bytes(size, '\0');
  size_t filled = 0;
  while (filled < size) {
    const ssize_t count =
        recv(socket_.get(), bytes.data() + filled, size - filled, 0);
    if (count > 0) {
      filled += static_cast<size_t>(count);
    } else if (count == 0) {
      throw_lost("the connection was closed");
    } else if (errno == EAGAIN) {
      if (!wait_for_input(config_.reply_timeout)) {
        throw TimeoutError(fmt::format(
            "the store at {} gave no reply within {}", name(),
            base::duration_text(
                static_cast<double>(config_.reply_timeout.count()) * 1e-3)));
      }
    } else if (errno != EINTR) {
      throw_lost(base::errno_text());
    }
  }
  return bytes;
}

uint64_t StoreClient::receive_number() {
  uint64_t number = 0;
  const std::string bytes = receive(sizeof(number));
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

std::string StoreClient::receive_bytes() {
  const uint64_t size = receive_number();
  if (size > StoreLimits().max_reply_bytes) {
    throw_lost(fmt::format("a reply of {} bytes", size));
  }
  return receive(size);
}

void StoreClient::send_keys(StoreQuery query, const Keys& keys) {
  const Keys names = wire_keys(keys);
  send({.query = query, .keys = views_of(names)});
}

void StoreClient::set(const std::string& key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  const std::string name = wire_key(key);
  send({.query = StoreQuery::kSet, .keys = {name}, .values = {value}});
}

void StoreClient::append(const std::string& key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  const std::string name = wire_key(key);
  send({.query = StoreQuery::kAppend, .keys = {name}, .values = {value}});
}

void StoreClient::multi_set(const Keys& keys,
                            const std::vector<std::string>& values) {
  LOCKSTEP_CHECK(keys.size() == values.size(), "keys and values of multi_set");
  const std::lock_guard lock(mutex_);
  const Keys names = wire_keys(keys);
  send({.query = StoreQuery::kMultiSet,
        .keys = views_of(names),
        .values = views_of(values)});
}

std::string StoreClient::compare_set(const std::string& key,
                                     std::string_view expected,
                                     std::string_view desired) {
  const std::lock_guard lock(mutex_);
  const std::string name = wire_key(key);
  send({.query = StoreQuery::kCompareSet,
        .keys = {name},
        .values = {expected, desired}});
  return receive_bytes();
}

std::string StoreClient::get(const std::string& key) {
  const std::lock_guard lock(mutex_);
  send_keys(StoreQuery::kGet, {key});
  return receive_bytes();
}

std::vector<std::string> StoreClient::multi_get(const Keys& keys) {
  const std::lock_guard lock(mutex_);
  send_keys(StoreQuery::kMultiGet, keys);
  std::vector<std::string> values;
  for (size_t i = 0; i < keys.size(); ++i) values.push_back(receive_bytes());
  return values;
}

int64_t StoreClient::add(const std::string& key, int64_t amount) {
  const std::lock_guard lock(mutex_);
  const std::string name = wire_key(key);
  send({.query = StoreQuery::kAdd, .keys = {name}, .number = amount});
  return static_cast<int64_t>(receive_number());
}

void StoreClient::count_as_worker() {
  const std::lock_guard lock(mutex_);
  send({.query = StoreQuery::kAdd, .keys = {"init/"}, .number = 1});
  receive_number();
}

bool StoreClient::check(const Keys& keys) {
  const std::lock_guard lock(mutex_);
  send_keys(StoreQuery::kCheck, keys);
  return receive(1)[0] == static_cast<char>(CheckReply::kReady);
}

bool StoreClient::erase(const std::string& key) {
  const std::lock_guard lock(mutex_);
  send_keys(StoreQuery::kDeleteKey, {key});
  return receive_number() == 1;
}

int64_t StoreClient::count_keys() {
  const std::lock_guard lock(mutex_);
  send({.query = StoreQuery::kGetNumKeys});
  return static_cast<int64_t>(receive_number());
}

StoreClient::Keys StoreClient::list_keys() {
  const std::lock_guard lock(mutex_);
  send({.query = StoreQuery::kListKeys});
  const uint64_t count = receive_number();
  Keys keys;
  for (uint64_t i = 0; i < count; ++i) {
    std::string key = receive_bytes();
    if (key.starts_with('/')) keys.push_back(key.substr(1));
  }
  return keys;
}

void StoreClient::wait(const Keys& keys, Timeout timeout) {
  const std::lock_guard lock(mutex_);
  send_keys(StoreQuery::kWait, keys);
  constexpr auto kDone = static_cast<char>(WaitReply::kStopWaiting);
  if (wait_for_input(timeout)) {
    if (receive(1)[0] != kDone) throw_lost("an odd reply to WAIT");
    return;
  }
  send({.query = StoreQuery::kCancelWait});
  // The keys may have come just before.
  const bool came = receive(1)[0] == kDone;
  if (came) {
    receive(1);
    return;
  }
  throw TimeoutError(fmt::format("wait timeout after {}ms, keys: {}",
                                 timeout.count(), fmt::join(keys, ", ")));
}

void StoreClient::push(const std::string& key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  const std::string name = wire_key(key);
  send({.query = StoreQuery::kQueuePush, .keys = {name}, .values = {value}});
}

std::optional<std::string> StoreClient::pop(const std::string& key) {
  const std::lock_guard lock(mutex_);
  send_keys(StoreQuery::kQueuePop, {key});
  if (receive_number() == 0) return std::nullopt;
  return receive_bytes();
}

int64_t StoreClient::queue_length(const std::string& key) {
  const std::lock_guard lock(mutex_);
  send_keys(StoreQuery::kQueueLength, {key});
  return static_cast<int64_t>(receive_number());
}

}  // namespace lockstep::net
