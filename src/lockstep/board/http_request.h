// Requests of HTTP/1.1, as far as a read-only page needs them.
//
// Debian's cpp-httplib gives every connection a thread of a small pool, so that
// a few idle ones or event streams block all others; hence this parser and
// http_server.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::board {

struct HttpRequest {
  bool is_head = false;   // HEAD; else GET.
  std::string path = {};  // Decoded; begins with '/'.
  std::vector<std::pair<std::string, std::string>> query = {};  // Decoded.
  std::string host = {};  // As sent, with its port.
  std::string cookie = {};
  std::string authorization = {};
  bool keep_alive = true;

  std::optional<std::string> value(std::string_view name) const;
};

struct ParsedRequest {
  enum class Kind { kIncomplete, kComplete, kRefused };
  Kind kind = Kind::kIncomplete;
  HttpRequest request = {};
  size_t size = 0;  // Bytes that the request took.
  int status = 0;   // For kRefused: 400, 405, 413, 431 or 505.
};

constexpr size_t kMostRequestBytes = size_t{16} << 10;

// The first request of the bytes that a client has sent. Takes no request with
// a body.
ParsedRequest parse_request(std::string_view bytes);

// "%2F" becomes "/"; no value for broken escapes and zero bytes.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace lockstep::board
