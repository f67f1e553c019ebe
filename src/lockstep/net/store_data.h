// The contents of a store: keys with values, queues, and who waits for what.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/net/store_limits.h"

namespace lockstep::net {

using StoreClientId = uint64_t;

// Not thread-safe. What would need more than StoreLimits::max_stored_bytes
// throws FormatError and changes nothing.
class StoreData {
 public:
  // Keys that begin with `reserved` are counted apart. Empty: none do.
  StoreData(const StoreLimits& limits, std::string reserved);

  bool is_reserved(std::string_view key) const;

  // Those that were waiting for the key, and now for nothing more, come back as
  // the result of every function that sets one.
  using Woken = std::vector<StoreClientId>;

  Woken set(std::string_view key, std::string_view value);
  Woken append(std::string_view key, std::string_view value);
  // Sets the key when its value is `expected`, or when there is none and
  // `expected` is empty. `result` is the value after it; `expected` where a key
  // is missing that should have a value, as libtorch's server answers.
  Woken compare_set(std::string_view key, std::string_view expected,
                    std::string_view desired, std::string& result);
  // Throws FormatError when the value is not a number.
  Woken add(std::string_view key, int64_t amount, int64_t& result);
  Woken push(std::string_view key, std::string_view value);

  // The empty text for a key that is not set.
  std::string_view get(std::string_view key) const;
  bool erase(std::string_view key);
  // A key counts as there when it has a value or a queue that is not empty.
  bool has(std::string_view key) const;
  // Takes the oldest value of a queue. False when it is empty.
  bool pop(std::string_view key, std::string& value);
  size_t queue_length(std::string_view key) const;

  enum class View { kAll, kUnreserved };
  size_t count_keys(View view) const;
  std::vector<std::string_view> list_keys(View view) const;

  // True: nothing to wait for. Else the client is in the result of the call
  // that sets the last of the keys. Throws FormatError when it waits already.
  bool wait(StoreClientId client, const std::vector<std::string_view>& keys);
  void cancel_wait(StoreClientId client);

  size_t num_stored_bytes() const { return num_stored_bytes_; }

 private:
  void charge(size_t bytes);
  void refund(size_t bytes);
  Woken wake(std::string_view key);
  Woken wake_one(std::string_view key);
  // True when it was the last key that the client waited for.
  bool stop_waiting_for(StoreClientId client, std::string_view key);

  using Queue = std::deque<std::string>;

  const StoreLimits* limits_;
  std::string reserved_;
  size_t num_stored_bytes_ = 0;
  size_t num_reserved_keys_ = 0;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, Queue, std::less<>> queues_;
  // Clients in the order in which they came.
  std::map<std::string, std::vector<StoreClientId>, std::less<>> waiting_;
  std::unordered_map<StoreClientId, std::set<std::string, std::less<>>>
      awaited_;
};

}  // namespace lockstep::net
