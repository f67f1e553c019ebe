#include "lockstep/board/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "lockstep/error.h"

namespace lockstep::board {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kReadBytes = size_t{16} << 10;
constexpr int64_t kPieceBytes = int64_t{256}
                                << 10;  // Read from a file at a time.
// At most sent at once, so that other connections have their turn.
constexpr size_t kTurnBytes = size_t{2} << 20;
constexpr auto kStreamKeepAlive = std::chrono::seconds(15);

const char* reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 303: return "See Other";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Content Too Large";
    case 431: return "Request Header Fields Too Large";
    case 505: return "HTTP Version Not Supported";
    default: return "Error";
  }
}

// Nothing of the page comes from elsewhere, and no other page may show it.
constexpr const char* kSafetyHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n";

std::string head_text(const HttpResponse& response, bool keep_alive) {
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", response.status,
                  reason_phrase(response.status), response.type);
  bool has_cache_rule = false;
  for (const auto& [name, value] : response.headers) {
    text += fmt::format("{}: {}\r\n", name, value);
    has_cache_rule |= name == "Cache-Control";
  }
  if (!has_cache_rule) text += "Cache-Control: no-store\r\n";
  if (response.file) {
    text += fmt::format("Content-Length: {}\r\n", response.file->size);
  } else if (!response.stream) {
    text += fmt::format("Content-Length: {}\r\n", response.body.size());
  }
  return text + kSafetyHeaders +
         (keep_alive ? "Connection: keep-alive\r\n\r\n"
                     : "Connection: close\r\n\r\n");
}

struct Connection {
  base::FileDescriptor socket = {};
  std::string in = {};
  std::string out = {};
  size_t sent = 0;                            // Bytes of `out`.
  bool is_closing = false;                    // Once all is sent.
  std::shared_ptr<const HttpFile> file = {};  // Follows `out`.
  int64_t file_sent = 0;  // Bytes of `file` sent or in `out`.
  std::shared_ptr<EventStream> stream = {};
  Clock::time_point active = {};   // Last byte in or out.
  Clock::time_point request = {};  // First byte of an unfinished request.

  size_t waiting() const { return out.size() - sent; }
  bool has_more() const { return waiting() > 0 || file != nullptr; }
};

// The next piece of its file becomes `out`, which is all sent.
void take_piece(Connection& connection) {
  connection.out.clear();
  connection.sent = 0;
  if (!connection.file) return;
  const int64_t left = connection.file->size - connection.file_sent;
  connection.out.resize(
      static_cast<size_t>(std::clamp<int64_t>(left, 0, kPieceBytes)));
  const ssize_t got = pread(connection.file->file.get(), connection.out.data(),
                            connection.out.size(), connection.file_sent);
  connection.out.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  connection.file_sent += static_cast<int64_t>(connection.out.size());
  // The length that was promised cannot be kept.
  if (got <= 0 && left > 0) connection.is_closing = true;
  if (got <= 0 || connection.file_sent == connection.file->size) {
    connection.file.reset();
  }
}

}  // namespace

struct HttpServer::Impl {
  Impl(base::FileDescriptor listening, HttpServerConfig limits, Handler answer)
      : listener(std::move(listening)),
        config(limits),
        handler(std::move(answer)),
        epoll(epoll_create1(EPOLL_CLOEXEC)) {}

  base::FileDescriptor listener;
  HttpServerConfig config;
  Handler handler;
  base::FileDescriptor epoll;
  std::unordered_map<int, Connection> connections = {};

  void watch(int fd, uint32_t events, int operation) const {
    epoll_event event{.events = events, .data = {.fd = fd}};
    epoll_ctl(epoll.get(), operation, fd, &event);
  }

  void accept_all() {
    for (;;) {
      base::FileDescriptor socket(accept4(listener.get(), nullptr, nullptr,
                                          SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        // Out of descriptors: make room instead of spinning.
        if (errno == EMFILE || errno == ENFILE) drop_idlest();
        return;
      }
      if (connections.size() >= config.most_connections) drop_idlest();
      const int fd = socket.get();
      watch(fd, EPOLLIN, EPOLL_CTL_ADD);
      Connection& connection = connections[fd];
      connection.socket = std::move(socket);
      connection.active = Clock::now();
      connection.request = connection.active;
    }
  }

  void drop_idlest() {
    const auto idlest = std::min_element(
        connections.begin(), connections.end(),
        [](const auto& a, const auto& b) {
          // Pages that follow runs go last.
          return std::pair(a.second.stream != nullptr, a.second.active) <
                 std::pair(b.second.stream != nullptr, b.second.active);
        });
    if (idlest != connections.end()) connections.erase(idlest);
  }

  // False when the connection is over.
  bool receive(Connection& connection) {
    std::array<char, kReadBytes> buffer{};
    const ssize_t got =
        recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    // Who sends without receiving is not active.
    if (!connection.has_more()) connection.active = Clock::now();
    // A page that follows events has nothing more to ask here.
    if (connection.stream || connection.is_closing) return true;
    if (connection.in.empty()) connection.request = Clock::now();
    connection.in.append(buffer.data(), static_cast<size_t>(got));
    return serve(connection);
  }

  // Requests that cannot be answered yet stay with the one who sends them.
  bool has_room(const Connection& connection) const {
    return !connection.is_closing && !connection.file &&
           connection.waiting() < config.most_waiting_bytes;
  }

  bool serve(Connection& connection) {
    while (!connection.stream && has_room(connection)) {
      ParsedRequest parsed = parse_request(connection.in);
      if (parsed.kind == ParsedRequest::Kind::kIncomplete) break;
      if (parsed.kind == ParsedRequest::Kind::kRefused) {
        const HttpResponse refusal{
            .status = parsed.status,
            .body = std::string(reason_phrase(parsed.status)) + "\n"};
        connection.out += head_text(refusal, false) + refusal.body;
        connection.is_closing = true;
        break;
      }
      connection.in.erase(0, parsed.size);
      connection.request = Clock::now();
      respond(connection, parsed.request);
    }
    return send_waiting(connection);
  }

  void respond(Connection& connection, const HttpRequest& request) {
    HttpResponse response = handler(request, connection.socket.get());
    const bool keep_alive = request.keep_alive && !response.stream;
    connection.out += head_text(response, keep_alive);
    if (request.is_head) response.stream.reset();
    if (response.stream) {
      connection.stream = std::move(response.stream);
      connection.out += connection.stream->next();
      return;
    }
    if (!request.is_head) {
      connection.out += response.body;
      connection.file = std::move(response.file);
      connection.file_sent = 0;
    }
    connection.is_closing = !keep_alive;
  }

  bool send_waiting(Connection& connection) {
    size_t sent_now = 0;
    bool is_blocked = false;
    while (!is_blocked && sent_now < kTurnBytes) {
      if (connection.waiting() == 0) take_piece(connection);
      if (connection.waiting() == 0) break;
      const ssize_t sent =
          send(connection.socket.get(), connection.out.data() + connection.sent,
               connection.waiting(), MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return false;
        is_blocked = true;
        continue;
      }
      connection.sent += static_cast<size_t>(sent);
      sent_now += static_cast<size_t>(sent);
      connection.active = Clock::now();
    }
    watch(connection.socket.get(),
          (has_room(connection) ? EPOLLIN : 0U) |
              (connection.has_more() ? EPOLLOUT : 0U),
          EPOLL_CTL_MOD);
    return connection.has_more() || !connection.is_closing;
  }

  void handle(int fd, uint32_t events) {
    const auto found = connections.find(fd);
    if (found == connections.end()) return;
    bool is_open = (events & (EPOLLERR | EPOLLHUP)) == 0;
    if (is_open && (events & EPOLLOUT) != 0) {
      is_open = send_waiting(found->second) && serve(found->second);
    }
    if (is_open && (events & EPOLLIN) != 0) is_open = receive(found->second);
    if (!is_open) connections.erase(found);
  }

  bool is_overdue(const Connection& connection, Clock::time_point now) const {
    if (connection.has_more()) {
      return now - connection.active > config.write_timeout;
    }
    if (connection.stream) return false;
    if (!connection.in.empty()) {
      return now - connection.request > config.request_timeout;
    }
    return now - connection.active > config.idle_timeout;
  }

  void tick() {
    const auto now = Clock::now();
    for (auto at = connections.begin(); at != connections.end();) {
      Connection& connection = at->second;
      bool is_open = !is_overdue(connection, now);
      if (is_open && connection.stream && connection.waiting() == 0) {
        connection.out = connection.stream->next();
        if (connection.out.empty() &&
            now - connection.active > kStreamKeepAlive) {
          connection.out = ": still here\n\n";
        }
        is_open = send_waiting(connection);
      }
      at = is_open ? std::next(at) : connections.erase(at);
    }
  }
};

HttpServer::HttpServer(base::FileDescriptor listener, HttpServerConfig config,
                       Handler handler)
    : impl_(std::make_unique<Impl>(std::move(listener), config,
                                   std::move(handler))) {
  if (!impl_->epoll) {
    throw IoError("cannot make an epoll descriptor: " + base::errno_text());
  }
  const int fd = impl_->listener.get();
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  impl_->watch(fd, EPOLLIN, EPOLL_CTL_ADD);
}

HttpServer::~HttpServer() = default;

void HttpServer::run(int stop_fd) {
  impl_->watch(stop_fd, EPOLLIN, EPOLL_CTL_ADD);
  std::array<epoll_event, 256> events{};
  auto next_tick = Clock::now() + impl_->config.tick;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        next_tick - Clock::now());
    const int count = epoll_wait(
        impl_->epoll.get(), events.data(), static_cast<int>(events.size()),
        static_cast<int>(std::max<int64_t>(0, left.count() + 1)));
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.fd == stop_fd) return;
      if (event.data.fd == impl_->listener.get()) {
        impl_->accept_all();
      } else {
        impl_->handle(event.data.fd, event.events);
      }
    }
    if (Clock::now() >= next_tick) {
      impl_->tick();
      next_tick = Clock::now() + impl_->config.tick;
    }
  }
}

}  // namespace lockstep::board
