#include "lockstep/net/store_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::net {
namespace {

// What a key costs beside its bytes: nodes of maps, heads of texts.
constexpr size_t kOverheadBytes = 128;

size_t cost(std::string_view text) { return text.size() + kOverheadBytes; }

size_t cost(std::string_view key, std::string_view value) {
  return cost(key) + value.size();
}

}  // namespace

StoreData::StoreData(const StoreLimits& limits, std::string reserved)
    : limits_(&limits), reserved_(std::move(reserved)) {}

bool StoreData::is_reserved(std::string_view key) const {
  return !reserved_.empty() && key.starts_with(reserved_);
}

void StoreData::charge(size_t bytes) {
  if (bytes > limits_->max_stored_bytes - num_stored_bytes_) {
    throw FormatError(fmt::format(
        "the store is full: it holds {} and {} more were asked for; the limit "
        "is {}",
        base::bytes_text(static_cast<int64_t>(num_stored_bytes_)),
        base::bytes_text(static_cast<int64_t>(bytes)),
        base::bytes_text(static_cast<int64_t>(limits_->max_stored_bytes))));
  }
  num_stored_bytes_ += bytes;
}

void StoreData::refund(size_t bytes) { num_stored_bytes_ -= bytes; }

StoreData::Woken StoreData::set(std::string_view key, std::string_view value) {
  const auto found = values_.find(key);
  if (found != values_.end()) {
    if (value.size() > found->second.size()) {
      charge(value.size() - found->second.size());
    } else {
      refund(found->second.size() - value.size());
    }
    found->second.assign(value);
  } else {
    charge(cost(key, value));
    values_.emplace(key, value);
    if (is_reserved(key)) ++num_reserved_keys_;
  }
  return wake(key);
}

StoreData::Woken StoreData::append(std::string_view key,
                                   std::string_view value) {
  const auto found = values_.find(key);
  if (found == values_.end()) return set(key, value);
  if (found->second.size() + value.size() > limits_->max_value_bytes) {
    throw FormatError(fmt::format(
        "APPEND makes a value of {} bytes; the limit "
        "is {}",
        found->second.size() + value.size(), limits_->max_value_bytes));
  }
  charge(value.size());
  found->second.append(value);
  return wake(key);
}

StoreData::Woken StoreData::compare_set(std::string_view key,
                                        std::string_view expected,
                                        std::string_view desired,
                                        std::string& result) {
  const auto found = values_.find(key);
  const bool is_there = found != values_.end();
  if (!is_there && !expected.empty()) {
    result = expected;
    return {};
  }
  if (is_there && found->second != expected) {
    result = found->second;
    return {};
  }
  result = desired;
  return set(key, desired);
}

StoreData::Woken StoreData::add(std::string_view key, int64_t amount,
                                int64_t& result) {
  result = amount;
  if (const auto found = values_.find(key); found != values_.end()) {
    const std::string_view text = base::trim(found->second);
    int64_t old = 0;
    const auto read =
        std::from_chars(text.data(), text.data() + text.size(), old);
    if (read.ec != std::errc()) {
      throw FormatError("ADD to a key with a value that is not a number");
    }
    // Around the end, as the machine counts.
    result = static_cast<int64_t>(static_cast<uint64_t>(old) +
                                  static_cast<uint64_t>(amount));
  }
  return set(key, std::to_string(result));
}

StoreData::Woken StoreData::push(std::string_view key, std::string_view value) {
  auto found = queues_.find(key);
  charge(cost(value) + (found == queues_.end() ? cost(key) : 0));
  if (found == queues_.end()) found = queues_.emplace(key, Queue()).first;
  found->second.emplace_back(value);
  return wake_one(key);
}

std::string_view StoreData::get(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::string_view() : found->second;
}

bool StoreData::erase(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  refund(cost(key, found->second));
  if (is_reserved(key)) --num_reserved_keys_;
  values_.erase(found);
  return true;
}

bool StoreData::has(std::string_view key) const {
  return values_.contains(key) || queues_.contains(key);
}

bool StoreData::pop(std::string_view key, std::string& value) {
  const auto found = queues_.find(key);
  if (found == queues_.end()) return false;
  value = std::move(found->second.front());
  found->second.pop_front();
  refund(cost(value));
  if (found->second.empty()) {
    refund(cost(key));
    queues_.erase(found);
  }
  return true;
}

size_t StoreData::queue_length(std::string_view key) const {
  const auto found = queues_.find(key);
  return found == queues_.end() ? 0 : found->second.size();
}

size_t StoreData::count_keys(View view) const {
  return view == View::kAll ? values_.size()
                            : values_.size() - num_reserved_keys_;
}

std::vector<std::string_view> StoreData::list_keys(View view) const {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : values_) {
    if (view == View::kAll || !is_reserved(key)) keys.emplace_back(key);
  }
  return keys;
}

bool StoreData::wait(StoreClientId client,
                     const std::vector<std::string_view>& keys) {
  if (awaited_.contains(client)) {
    throw FormatError("WAIT while an earlier WAIT is pending");
  }
  std::set<std::string, std::less<>> missing;
  size_t bytes = 0;
  for (const std::string_view key : keys) {
    if (has(key) || !missing.emplace(key).second) continue;
    bytes += 2 * cost(key);
  }
  if (missing.empty()) return true;
  charge(bytes);
  for (const std::string& key : missing) waiting_[key].push_back(client);
  awaited_.emplace(client, std::move(missing));
  return false;
}

void StoreData::cancel_wait(StoreClientId client) {
  const auto found = awaited_.find(client);
  if (found == awaited_.end()) return;
  for (const std::string& key : found->second) {
    const auto at = waiting_.find(key);
    std::erase(at->second, client);
    if (at->second.empty()) waiting_.erase(at);
    refund(2 * cost(key));
  }
  awaited_.erase(found);
}

bool StoreData::stop_waiting_for(StoreClientId client, std::string_view key) {
  const auto found = awaited_.find(client);
  found->second.erase(found->second.find(key));
  refund(2 * cost(key));
  if (!found->second.empty()) return false;
  awaited_.erase(found);
  return true;
}

StoreData::Woken StoreData::wake(std::string_view key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return {};
  const std::vector<StoreClientId> clients = std::move(found->second);
  waiting_.erase(found);
  Woken woken;
  for (const StoreClientId client : clients) {
    if (stop_waiting_for(client, key)) woken.push_back(client);
  }
  return woken;
}

// One value is for one client: the others go on waiting.
StoreData::Woken StoreData::wake_one(std::string_view key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return {};
  std::vector<StoreClientId>& clients = found->second;
  Woken woken;
  while (!clients.empty() && woken.empty()) {
    const StoreClientId client = clients.front();
    clients.erase(clients.begin());
    if (stop_waiting_for(client, key)) woken.push_back(client);
  }
  if (clients.empty()) waiting_.erase(found);
  return woken;
}

}  // namespace lockstep::net
