// What a store grants its clients.
#pragma once

#include <chrono>
#include <cstddef>

namespace lockstep::net {

// A client that asks for more loses its connection. The limits of one request
// are those of libtorch's own server; that one has no limits in sum.
struct StoreLimits {
  size_t max_key_bytes = size_t{8} << 10;
  size_t max_value_bytes = size_t{8} << 20;
  size_t max_keys_per_request = size_t{128} << 10;
  size_t max_request_bytes = size_t{64} << 20;
  size_t max_reply_bytes = size_t{64} << 20;
  // Keys, values, queues and what clients wait for, over all clients.
  size_t max_stored_bytes = size_t{256} << 20;
  // Requests and replies on their way, over all clients.
  size_t max_buffered_bytes = size_t{256} << 20;
  size_t max_connections = 4096;
  // Connections that have not passed the handshake. When one more comes, the
  // oldest is closed.
  size_t max_silent_connections = 256;
  std::chrono::milliseconds handshake_timeout{5000};
};

}  // namespace lockstep::net
