// c10d's interface to a StoreClient.
#pragma once

#include <functional>
#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/net/store_client.h"
#include "lockstep/net/store_server.h"

namespace lockstep::comm {

// The server of a rank that hosts the store, with its socket.
struct HostedStore {
  explicit HostedStore(base::FileDescriptor socket,
                       net::StoreServerConfig config)
      : listener(std::move(socket)), server(listener, std::move(config)) {}
  base::FileDescriptor listener;
  net::StoreServer server;
};

// Unlike c10d's own TCPStore it looks no address up by name, logs nothing, and
// can be used after a wait that timed out.
class ClientStore : public c10d::Store {
 public:
  // `host` keeps the server of this process alive, if there is one. Waiting
  // throws PeerError once is_outdated() says that a rank was replaced.
  explicit ClientStore(std::unique_ptr<net::StoreClient> client,
                       std::shared_ptr<HostedStore> host = nullptr,
                       std::function<bool()> is_outdated = {});

  int port() const { return client_->config().port; }

  using Bytes = std::vector<uint8_t>;
  using Keys = std::vector<std::string>;

  c10::intrusive_ptr<c10d::Store> clone() override;
  void set(const std::string& key, const Bytes& value) override;
  Bytes compareSet(const std::string& key, const Bytes& expected,
                   const Bytes& desired) override;
  Bytes get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const Keys& keys) override;
  int64_t getNumKeys() override;
  void wait(const Keys& keys) override;
  void wait(const Keys& keys,
            const std::chrono::milliseconds& timeout) override;
  void append(const std::string& key, const Bytes& value) override;
  std::vector<Bytes> multiGet(const Keys& keys) override;
  void multiSet(const Keys& keys, const std::vector<Bytes>& values) override;
  bool hasExtendedApi() const override { return true; }
  void queuePush(const std::string& key, const Bytes& value) override;
  Bytes queuePop(const std::string& key, bool block) override;
  int64_t queueLen(const std::string& key) override;
  Keys listKeys() override;

 private:
  void wait_for(const Keys& keys, std::chrono::milliseconds timeout);
  void require_current() const;

  std::shared_ptr<HostedStore> host_;  // outlives the client
  std::unique_ptr<net::StoreClient> client_;
  std::function<bool()> is_outdated_;  // Or empty.
};

}  // namespace lockstep::comm
