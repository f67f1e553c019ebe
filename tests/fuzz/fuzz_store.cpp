// Several clients of one store; their bytes arrive in pieces: each piece is a
// byte for the client, one for the length, and the bytes.
#include <set>

#include "fuzz/target.h"
#include "lockstep/net/store_engine.h"

namespace {

using namespace lockstep;

constexpr size_t kNumClients = 4;

class Clients {
 public:
  void receive(net::StoreClientId client, std::string_view bytes) {
    if (!connected_.contains(client)) {
      engine_.connect(client);
      connected_.insert(client);
    }
    try {
      engine_.receive(client, bytes,
                      [this](net::StoreClientId to, std::string_view) {
                        fuzz::require(connected_.contains(to));
                      });
    } catch (const FormatError&) {
      leave(client);
    }
    fuzz::require(engine_.num_stored_bytes() <= limits().max_stored_bytes);
  }

  void leave(net::StoreClientId client) {
    engine_.disconnect(client);
    connected_.erase(client);
  }

  static net::StoreLimits limits() {
    return {.max_value_bytes = 4096,
            .max_request_bytes = 8192,
            .max_reply_bytes = 16384,
            .max_stored_bytes = 32768};
  }

 private:
  net::StoreEngine engine_{{.limits = limits(), .secret = "s"}};
  std::set<net::StoreClientId> connected_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest = fuzz::as_text(data, size);
  Clients clients;
  while (rest.size() >= 2) {
    const auto client = static_cast<uint8_t>(rest[0]) % kNumClients;
    const auto length = static_cast<uint8_t>(rest[1]);
    clients.receive(client, rest.substr(2, length));
    rest.remove_prefix(std::min<size_t>(rest.size(), size_t{2} + length));
  }
  return 0;
}
