#include "lockstep/net/store_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/net/address.h"
#include "lockstep/net/socket_owner.h"

namespace lockstep::net {
namespace {

using Clock = std::chrono::steady_clock;

// What epoll gives back instead of a client.
constexpr StoreClientId kStop = 0;
constexpr StoreClientId kListener = 1;
constexpr StoreClientId kFirstClient = 2;

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr int kAcceptsAtOnce = 64;
constexpr size_t kMaxNotices = 16;
// Without a descriptor left, accepting is tried again after this time.
constexpr std::chrono::milliseconds kPause{100};

struct Connection {
  base::FileDescriptor socket;
  std::string unsent;
  Clock::time_point deadline;  // of the handshake
  uint32_t events = EPOLLIN;
  size_t num_unread_bytes = 0;  // requests that are not complete
};

}  // namespace

class StoreServer::Loop {
 public:
  Loop(const base::FileDescriptor& listener, StoreServerConfig config);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  std::vector<std::string> take_notices();

 private:
  void run();
  void serve();
  int milliseconds_to_wait() const;
  void watch(int fd, StoreClientId id, uint32_t events, int operation);
  void accept_all();
  void pause_listening();
  void admit(base::FileDescriptor socket);
  bool is_welcome(int socket);
  void drop_late_ones();
  void handle(StoreClientId id, uint32_t events);
  void receive(StoreClientId id);
  void count_unread_bytes(StoreClientId id);
  void queue_reply(StoreClientId to, StoreClientId from,
                   std::string_view bytes);
  void flush(StoreClientId id);
  void drop(StoreClientId id);
  void drop_broken_ones();
  void note(std::string text);

  StoreServerConfig config_;
  int listener_;
  StoreEngine engine_;
  SocketOwners owners_;
  base::FileDescriptor epoll_;
  base::FileDescriptor stop_;
  std::map<StoreClientId, Connection> connections_;
  std::deque<StoreClientId> silent_;  // not validated yet, the oldest first
  std::vector<StoreClientId> broken_;
  StoreClientId next_id_ = kFirstClient;
  size_t num_unsent_bytes_ = 0;
  size_t num_unread_bytes_ = 0;
  std::optional<Clock::time_point> paused_until_;
  std::mutex mutex_;
  std::vector<std::string> notices_;  // under mutex_
  std::thread thread_;
};

StoreServer::Loop::Loop(const base::FileDescriptor& listener,
                        StoreServerConfig config)
    : config_(std::move(config)),
      listener_(listener.get()),
      engine_({.limits = config_.limits, .secret = config_.secret}),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !stop_) {
    throw IoError("cannot serve the store: " + base::errno_text());
  }
  watch(stop_.get(), kStop, EPOLLIN, EPOLL_CTL_ADD);
  watch(listener_, kListener, EPOLLIN, EPOLL_CTL_ADD);
  // The thread inherits the mask: signals are for the others.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::exception& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw IoError(std::string("cannot serve the store: ") + error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StoreServer::Loop::~Loop() {
  const uint64_t one = 1;
  const ssize_t written [[maybe_unused]] =
      write(stop_.get(), &one, sizeof(one));
  thread_.join();
}

std::vector<std::string> StoreServer::Loop::take_notices() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notices_, {});
}

void StoreServer::Loop::note(std::string text) {
  const std::lock_guard lock(mutex_);
  if (notices_.size() >= kMaxNotices ||
      std::find(notices_.begin(), notices_.end(), text) != notices_.end()) {
    return;
  }
  notices_.push_back(std::move(text));
}

void StoreServer::Loop::watch(int fd, StoreClientId id, uint32_t events,
                              int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_.get(), operation, fd, &event);
}

void StoreServer::Loop::run() {
  pthread_setname_np(pthread_self(), "lockstep-store");
  try {
    serve();
  } catch (const std::exception& error) {
    // Only for want of memory: the clients see their connections close.
    note(fmt::format("the store had to end: {}", error.what()));
    connections_.clear();
  }
}

void StoreServer::Loop::serve() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                   milliseconds_to_wait());
    for (int i = 0; i < count; ++i) {
      const StoreClientId id = events[static_cast<size_t>(i)].data.u64;
      if (id == kStop) return;
      if (id == kListener) {
        accept_all();
      } else {
        handle(id, events[static_cast<size_t>(i)].events);
      }
    }
    drop_broken_ones();
    drop_late_ones();
    if (paused_until_ && Clock::now() >= *paused_until_) {
      paused_until_.reset();
      watch(listener_, kListener, EPOLLIN, EPOLL_CTL_ADD);
    }
  }
}

int StoreServer::Loop::milliseconds_to_wait() const {
  std::optional<Clock::time_point> next = paused_until_;
  if (!silent_.empty()) {
    const auto deadline = connections_.at(silent_.front()).deadline;
    next = next ? std::min(*next, deadline) : deadline;
  }
  if (!next) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      *next - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count() + 1));
}

void StoreServer::Loop::accept_all() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    base::FileDescriptor socket(
        accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      admit(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
               errno == ENOMEM) {
      pause_listening();
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

// No descriptor is left: drop clients that have sent nothing.
void StoreServer::Loop::pause_listening() {
  note("the store has no file descriptor left for a connection: " +
       base::errno_text());
  if (!silent_.empty()) {
    drop(silent_.front());
    return;
  }
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_, nullptr);
  paused_until_ = Clock::now() + kPause;
}

void StoreServer::Loop::admit(base::FileDescriptor socket) {
  if (!is_welcome(socket.get())) return;
  if (connections_.size() >= config_.limits.max_connections) {
    note(fmt::format("the store has {} connections, its limit, and refused one",
                     connections_.size()));
    return;
  }
  if (silent_.size() >= config_.limits.max_silent_connections) {
    drop(silent_.front());
  }
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const StoreClientId id = next_id_++;
  watch(socket.get(), id, EPOLLIN, EPOLL_CTL_ADD);
  connections_.emplace(
      id,
      Connection{.socket = std::move(socket),
                 .unsent = {},
                 .deadline = Clock::now() + config_.limits.handshake_timeout});
  silent_.push_back(id);
  engine_.connect(id);
}

bool StoreServer::Loop::is_welcome(int socket) {
  if (config_.admission == Admission::kEveryone) return true;
  const auto owner = owners_.owner_of_peer(socket);
  if (owner == config_.own_user) return true;
  if (owner) {
    note(fmt::format("the store refused a connection of another user (uid {})",
                     *owner));
  } else if (const SocketAddress peer = peer_address_of(socket);
             peer.size > 0 && !peer.is_loopback()) {
    note("the store refused a connection of another machine");
  }
  return false;
}

void StoreServer::Loop::drop_late_ones() {
  const auto now = Clock::now();
  while (!silent_.empty() && connections_.at(silent_.front()).deadline <= now) {
    drop(silent_.front());
  }
}

void StoreServer::Loop::handle(StoreClientId id, uint32_t events) {
  // Dropped earlier in this round.
  if (!connections_.contains(id)) return;
  if ((events & EPOLLOUT) != 0) flush(id);
  if ((events & ~uint32_t{EPOLLOUT}) != 0) receive(id);
}

void StoreServer::Loop::receive(StoreClientId id) {
  std::array<char, kReadBytes> buffer;
  const ssize_t count =
      read(connections_.at(id).socket.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    drop(id);
    return;
  }
  const bool was_silent = !engine_.is_validated(id);
  try {
    engine_.receive(id, {buffer.data(), static_cast<size_t>(count)},
                    [&](StoreClientId to, std::string_view bytes) {
                      queue_reply(to, id, bytes);
                    });
    count_unread_bytes(id);
    if (num_unread_bytes_ > config_.limits.max_buffered_bytes) {
      throw FormatError("too many requests are under way");
    }
  } catch (const FormatError& error) {
    note(fmt::format("the store closed a connection: {}", error.what()));
    drop(id);
    return;
  }
  if (was_silent && engine_.is_validated(id)) std::erase(silent_, id);
  flush(id);
}

void StoreServer::Loop::count_unread_bytes(StoreClientId id) {
  size_t& count = connections_.at(id).num_unread_bytes;
  num_unread_bytes_ -= count;
  count = engine_.num_buffered_bytes(id);
  num_unread_bytes_ += count;
}

// A client may ask for more than it takes; what others get because of it is one
// byte each.
void StoreServer::Loop::queue_reply(StoreClientId to, StoreClientId from,
                                    std::string_view bytes) {
  Connection& connection = connections_.at(to);
  if (to == from &&
      (connection.unsent.size() + bytes.size() >
           config_.limits.max_reply_bytes + kReadBytes ||
       num_unsent_bytes_ + bytes.size() > config_.limits.max_buffered_bytes)) {
    throw FormatError("replies that the client does not read");
  }
  connection.unsent.append(bytes);
  num_unsent_bytes_ += bytes.size();
  if (to != from) flush(to);
}

void StoreServer::Loop::flush(StoreClientId id) {
  Connection& connection = connections_.at(id);
  std::string& unsent = connection.unsent;
  size_t sent = 0;
  while (sent < unsent.size()) {
    const ssize_t count =
        send(connection.socket.get(), unsent.data() + sent,
             unsent.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<size_t>(count);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || errno == EAGAIN) break;
    broken_.push_back(id);
    break;
  }
  num_unsent_bytes_ -= sent;
  unsent.erase(0, sent);
  if (unsent.empty() && unsent.capacity() > kReadBytes) unsent.shrink_to_fit();
  // Requests are read once the replies to earlier ones are taken.
  const uint32_t events = unsent.empty() ? EPOLLIN : EPOLLOUT;
  if (events == connection.events) return;
  connection.events = events;
  watch(connection.socket.get(), id, events, EPOLL_CTL_MOD);
}

void StoreServer::Loop::drop(StoreClientId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  num_unsent_bytes_ -= found->second.unsent.size();
  num_unread_bytes_ -= found->second.num_unread_bytes;
  std::erase(silent_, id);
  engine_.disconnect(id);
  connections_.erase(found);
}

void StoreServer::Loop::drop_broken_ones() {
  for (const StoreClientId id : std::exchange(broken_, {})) drop(id);
}

StoreServer::StoreServer(const base::FileDescriptor& listener,
                         StoreServerConfig config)
    : loop_(std::make_unique<Loop>(listener, std::move(config))) {}

StoreServer::~StoreServer() = default;

std::vector<std::string> StoreServer::take_notices() {
  return loop_->take_notices();
}

}  // namespace lockstep::net
