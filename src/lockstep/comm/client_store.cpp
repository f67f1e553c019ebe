#include "lockstep/comm/client_store.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <thread>

#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

std::string_view view_of(const ClientStore::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ClientStore::Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

}  // namespace

ClientStore::ClientStore(std::unique_ptr<net::StoreClient> client,
                         std::shared_ptr<HostedStore> host,
                         std::function<bool()> is_outdated)
    : Store(client->config().reply_timeout),
      host_(std::move(host)),
      client_(std::move(client)),
      is_outdated_(std::move(is_outdated)) {}

void ClientStore::require_current() const {
  if (is_outdated_ && is_outdated_()) {
    throw PeerError("another rank died while the ranks connected");
  }
}

void ClientStore::wait_for(const Keys& keys,
                           std::chrono::milliseconds timeout) {
  if (!is_outdated_) {
    client_->wait(keys, timeout);
    return;
  }
  // Ranks that meet again come within milliseconds of each other.
  constexpr std::chrono::microseconds kLongestPause{5000};
  std::chrono::microseconds pause{100};
  // The death of a rank ends it: Gloo's short limit is for its connections.
  const auto deadline =
      std::chrono::steady_clock::now() + std::max(timeout, timeout_);
  while (!client_->check(keys)) {
    require_current();
    if (std::chrono::steady_clock::now() > deadline) {
      throw TimeoutError("the job's store did not get " + keys.front() +
                         " in time");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

c10::intrusive_ptr<c10d::Store> ClientStore::clone() {
  auto other = net::StoreClient::connect(client_->config());
  if (other == nullptr) throw PeerError("the job's store is gone");
  return c10::make_intrusive<ClientStore>(std::move(other), host_,
                                          is_outdated_);
}

void ClientStore::set(const std::string& key, const Bytes& value) {
  client_->set(key, view_of(value));
}

ClientStore::Bytes ClientStore::compareSet(const std::string& key,
                                           const Bytes& expected,
                                           const Bytes& desired) {
  return bytes_of(
      client_->compare_set(key, view_of(expected), view_of(desired)));
}

ClientStore::Bytes ClientStore::get(const std::string& key) {
  wait_for({key}, timeout_);
  return bytes_of(client_->get(key));
}

int64_t ClientStore::add(const std::string& key, int64_t value) {
  return client_->add(key, value);
}

bool ClientStore::deleteKey(const std::string& key) {
  return client_->erase(key);
}

bool ClientStore::check(const Keys& keys) {
  require_current();
  return client_->check(keys);
}

int64_t ClientStore::getNumKeys() { return client_->count_keys(); }

void ClientStore::wait(const Keys& keys) { wait_for(keys, timeout_); }

void ClientStore::wait(const Keys& keys,
                       const std::chrono::milliseconds& timeout) {
  wait_for(keys, timeout);
}

void ClientStore::append(const std::string& key, const Bytes& value) {
  client_->append(key, view_of(value));
}

std::vector<ClientStore::Bytes> ClientStore::multiGet(const Keys& keys) {
  wait_for(keys, timeout_);
  std::vector<Bytes> values;
  for (const std::string& value : client_->multi_get(keys)) {
    values.push_back(bytes_of(value));
  }
  return values;
}

void ClientStore::multiSet(const Keys& keys, const std::vector<Bytes>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const Bytes& value : values) texts.emplace_back(view_of(value));
  client_->multi_set(keys, texts);
}

void ClientStore::queuePush(const std::string& key, const Bytes& value) {
  client_->push(key, view_of(value));
}

ClientStore::Bytes ClientStore::queuePop(const std::string& key, bool block) {
  if (block) wait_for({key}, timeout_);
  const auto value = client_->pop(key);
  if (!value) C10_THROW_ERROR(DistQueueEmptyError, "queue is empty");
  return bytes_of(*value);
}

int64_t ClientStore::queueLen(const std::string& key) {
  return client_->queue_length(key);
}

ClientStore::Keys ClientStore::listKeys() { return client_->list_keys(); }

}  // namespace lockstep::comm
