// A store without its sockets: bytes of clients in, bytes for clients out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lockstep/net/store_data.h"
#include "lockstep/net/store_protocol.h"

namespace lockstep::net {

// Keys of Lockstep's own ranks, as they are on the wire.
constexpr std::string_view kReservedKeys = "/lockstep/";
// COMPARE_SET with this key and the secret as expected value proves the secret.
// libtorch's clients cannot name it: their keys begin with '/'.
constexpr std::string_view kProofKey = "lockstep-proof";
constexpr std::string_view kProofAccepted = "accepted";

struct StoreEngineConfig {
  StoreLimits limits = {};
  // Clients that prove it may use kReservedKeys, others cannot. Empty: nothing
  // is reserved.
  std::string secret = {};
};

// Not thread-safe. Every client is answered in the order of its requests.
class StoreEngine {
 public:
  explicit StoreEngine(StoreEngineConfig config);
  StoreEngine(const StoreEngine&) = delete;
  StoreEngine& operator=(const StoreEngine&) = delete;

  using Send = std::function<void(StoreClientId, std::string_view)>;

  void connect(StoreClientId client);
  // Handles all requests that are complete. `send` gets the replies, also those
  // to other clients that were waiting. Throws FormatError when the client
  // breaks the protocol or a limit: disconnect it then.
  void receive(StoreClientId client, std::string_view bytes, const Send& send);
  void disconnect(StoreClientId client);

  // It has sent the magic number.
  bool is_validated(StoreClientId client) const;
  size_t num_buffered_bytes(StoreClientId client) const;
  size_t num_stored_bytes() const { return data_.num_stored_bytes(); }

 private:
  struct Client {
    explicit Client(const StoreLimits& limits) : reader(limits) {}
    StoreRequestReader reader;
    bool is_validated = false;
    bool has_proof = false;
  };

  void answer(StoreClientId id, const StoreRequest& request, const Send& send);
  void answer_change(StoreClientId id, const StoreRequest& request,
                     const Send& send);
  std::string reply_to(const StoreRequest& request, const Client& client);
  void validate(const StoreRequest& request, Client& client) const;
  void prove(StoreClientId id, const StoreRequest& request, const Send& send);
  void check_keys(const StoreRequest& request, const Client& client) const;
  std::string get_all(const StoreRequest& request) const;
  std::string list_keys(StoreData::View view) const;

  StoreEngineConfig config_;
  StoreData data_;
  std::unordered_map<StoreClientId, Client> clients_;
};

}  // namespace lockstep::net
