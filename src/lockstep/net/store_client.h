// A client of a TCP store: of StoreServer, or of libtorch's own server.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/net/store_protocol.h"

namespace lockstep::net {

struct StoreClientConfig {
  std::string host = "127.0.0.1";
  int port = 0;
  // How long to look for a store; 0: one try.
  std::chrono::milliseconds search_timeout{0};
  // For any reply but that of wait().
  std::chrono::milliseconds reply_timeout{0};
  // Proved to the server after it was found to belong to this user; it is sent
  // to nobody else, unless kOtherMachine allows it.
  std::optional<std::string> secret = std::nullopt;
  // Who may host the store: this user when it is on this machine; the same, and
  // another machine may be sent the secret (a job's name); or anyone.
  enum class Host { kOwnUser, kOtherMachine, kAnyone };
  Host allowed_host = Host::kOwnUser;
};

// One connection. Thread-safe: requests of several threads follow each other.
// Keys get the '/' that libtorch's clients put before theirs. Functions throw
// PeerError when the connection is lost and TimeoutError when no reply comes in
// time; the client is of no use after either, unless wait() threw the latter.
class StoreClient {
 public:
  using Keys = std::vector<std::string>;
  using Timeout = std::chrono::milliseconds;

  // nullptr: nobody accepted connections there in time. Throws
  // ConfigError when the host has no address or another user listens there,
  // PeerError when what listens there is not a store, or refuses this client.
  static std::unique_ptr<StoreClient> connect(const StoreClientConfig& config);

  void set(const std::string& key, std::string_view value);
  void append(const std::string& key, std::string_view value);
  void multi_set(const Keys& keys, const std::vector<std::string>& values);
  std::string compare_set(const std::string& key, std::string_view expected,
                          std::string_view desired);
  // Empty for a key that is not set.
  std::string get(const std::string& key);
  std::vector<std::string> multi_get(const Keys& keys);
  int64_t add(const std::string& key, int64_t amount);
  // What libtorch's clients do that were told a number of workers: its server
  // counts them, under a key without the '/'.
  void count_as_worker();
  bool check(const Keys& keys);
  bool erase(const std::string& key);
  int64_t count_keys();
  Keys list_keys();
  // Returns when all keys are set. Throws TimeoutError that names them.
  void wait(const Keys& keys, Timeout timeout);
  void push(const std::string& key, std::string_view value);
  // No value when the queue is empty.
  std::optional<std::string> pop(const std::string& key);
  int64_t queue_length(const std::string& key);

  const StoreClientConfig& config() const { return config_; }

 private:
  enum class Handshake { kDone, kClosed, kSilent };

  StoreClient(StoreClientConfig config, base::FileDescriptor socket);

  Handshake shake_hands(Timeout timeout);
  void check_host() const;
  void prove_secret();
  void send(const StoreRequest& request);
  void send_keys(StoreQuery query, const Keys& keys);
  std::string receive(size_t size);
  uint64_t receive_number();
  std::string receive_bytes();
  bool wait_for_input(Timeout timeout) const;
  [[noreturn]] void throw_lost(const std::string& reason) const;
  std::string name() const;

  StoreClientConfig config_;
  base::FileDescriptor socket_;
  std::mutex mutex_;
};

}  // namespace lockstep::net
