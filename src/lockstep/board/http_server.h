// A small HTTP server: one thread around epoll, so that a thousand idle
// connections cost descriptors and nothing else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/board/http_request.h"

namespace lockstep::board {

// Server-sent events of one page.
class EventStream {
 public:
  virtual ~EventStream() = default;
  // What to send now; empty: nothing. Called about once a second, not while
  // earlier text waits to be sent.
  virtual std::string next() = 0;
};

// The first `size` bytes of a file.
struct HttpFile {
  base::FileDescriptor file = {};
  int64_t size = 0;
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
  // Instead of a body: read piece by piece while it is sent. The connection
  // ends where the file has become shorter.
  std::shared_ptr<const HttpFile> file = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::shared_ptr<EventStream> stream = {};  // Instead of a body.
};

struct HttpServerConfig {
  size_t most_connections = 2000;  // The one idle longest makes room.
  std::chrono::milliseconds request_timeout = std::chrono::seconds(15);
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(75);
  std::chrono::milliseconds write_timeout = std::chrono::seconds(60);
  std::chrono::milliseconds tick = std::chrono::seconds(1);
  // Per connection: with more to send, nothing is read from it.
  size_t most_waiting_bytes = size_t{64} << 20;
};

class HttpServer {
 public:
  // `socket`: the connection, for who is at its other end. Must not throw.
  using Handler =
      std::function<HttpResponse(const HttpRequest& request, int socket)>;

  // `listener` listens. Throws IoError.
  HttpServer(base::FileDescriptor listener, HttpServerConfig config,
             Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves until `stop_fd` can be read.
  void run(int stop_fd);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::board
