#include "lockstep/nodes/node_link.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/net/address.h"

namespace lockstep::nodes {
namespace {

constexpr double kConnectSeconds = 5;
constexpr double kHandshakeSeconds = 10;
constexpr double kFirstPauseSeconds = 0.02;
constexpr double kLongestPauseSeconds = 1;
constexpr size_t kLinkReadBytes = size_t{64} << 10;

int64_t after_seconds(double seconds) {
  return base::monotonic_ns() +
         static_cast<int64_t>(seconds * double{base::kNsPerSecond});
}

void raise_event(const base::FileDescriptor& event) {
  eventfd_write(event.get(), 1);
}

void clear_event(const base::FileDescriptor& event) {
  eventfd_t count = 0;
  eventfd_read(event.get(), &count);
}

}  // namespace

class NodeLink::Loop {
 public:
  explicit Loop(NodeLinkConfig config);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  int fd() const { return news_.get(); }
  std::optional<Message> next();
  std::optional<LinkLoss> loss();
  bool is_found() const { return is_known_; }
  void send(const Message& message);
  void set_stuck(bool is_stuck);

 private:
  enum class Wait { kReady, kTimeout, kStopped };

  void run();
  bool find_host();
  bool try_addresses(std::string& problem);
  base::FileDescriptor connect_to(const net::SocketAddress& address,
                                  std::string& problem);
  bool shake_hands(const base::FileDescriptor& socket, std::string& problem);
  bool talk_or_begin_again();
  void talk();
  bool has_input() const;
  void send_all();
  void send_goodbye();
  void flush();
  void receive_all();
  Wait wait_for(int socket, short events, int64_t deadline_ns);
  bool is_stopping();
  void lose(LinkLoss::Kind kind, std::string reason);
  std::string address() const;

  NodeLinkConfig config_;
  base::FileDescriptor news_;  // for the user of the link
  base::FileDescriptor wake_;  // for the thread
  base::FileDescriptor socket_;
  std::optional<FrameReader> reader_;
  std::optional<FrameWriter> writer_;
  std::string unsent_;
  int64_t deadline_ns_ = 0;             // for finding the host
  std::atomic<bool> is_known_ = false;  // the host has read the proof
  std::vector<Message> early_;          // sent before
  int64_t heard_ns_ = 0;
  int64_t next_alive_ns_ = 0;

  std::mutex mutex_;
  bool is_stopping_ = false;  // the rest is under mutex_
  std::deque<Message> received_;
  std::vector<Message> to_send_;
  std::optional<LinkLoss> loss_;
  bool is_stuck_ = false;
  std::thread thread_;
};

NodeLink::Loop::Loop(NodeLinkConfig config)
    : config_(std::move(config)),
      news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!news_ || !wake_) {
    throw IoError("cannot talk to the other nodes: " + base::errno_text());
  }
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

NodeLink::Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  raise_event(wake_);
  thread_.join();
}

std::optional<Message> NodeLink::Loop::next() {
  clear_event(news_);
  const std::lock_guard lock(mutex_);
  std::optional<Message> message;
  if (!received_.empty()) {
    message = std::move(received_.front());
    received_.pop_front();
  }
  if (!received_.empty() || loss_) raise_event(news_);
  return message;
}

std::optional<LinkLoss> NodeLink::Loop::loss() {
  const std::lock_guard lock(mutex_);
  return loss_;
}

void NodeLink::Loop::send(const Message& message) {
  {
    const std::lock_guard lock(mutex_);
    to_send_.push_back(message);
  }
  raise_event(wake_);
}

void NodeLink::Loop::set_stuck(bool is_stuck) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stuck == std::exchange(is_stuck_, is_stuck)) return;
  }
  send(Alive{.is_stuck = is_stuck});
}

bool NodeLink::Loop::is_stopping() {
  const std::lock_guard lock(mutex_);
  return is_stopping_;
}

void NodeLink::Loop::lose(LinkLoss::Kind kind, std::string reason) {
  const std::lock_guard lock(mutex_);
  loss_ = {.kind = kind, .reason = std::move(reason)};
  raise_event(news_);
}

std::string NodeLink::Loop::address() const {
  return fmt::format("{}:{}", config_.host, config_.port);
}

void NodeLink::Loop::run() {
  pthread_setname_np(pthread_self(), "lockstep-link");
  try {
    deadline_ns_ = after_seconds(config_.join_seconds);
    while (find_host() && !talk_or_begin_again()) {
    }
  } catch (const ConfigError& error) {
    lose(LinkLoss::Kind::kRefused,
         fmt::format("{}: {}", address(), error.what()));
  } catch (const std::exception& error) {
    send_goodbye();
    lose(LinkLoss::Kind::kLost,
         fmt::format("the connection to the host of the job ({}) broke: {}",
                     address(), error.what()));
  }
}

// False: the host closed the connection before it had read the proof, as one
// does that has no CPU for a while.
bool NodeLink::Loop::talk_or_begin_again() {
  try {
    talk();
    return true;
  } catch (const PeerError&) {
    if (is_known_ || base::monotonic_ns() >= deadline_ns_) throw;
    unsent_.clear();
    const std::lock_guard lock(mutex_);
    to_send_.insert(to_send_.begin(), early_.begin(), early_.end());
    early_.clear();
  }
  return wait_for(-1, 0, after_seconds(kLongestPauseSeconds)) == Wait::kStopped;
}

// Sleeps, too: with a descriptor of -1.
NodeLink::Loop::Wait NodeLink::Loop::wait_for(int socket, short events,
                                              int64_t deadline_ns) {
  while (true) {
    const int64_t left = deadline_ns - base::monotonic_ns();
    if (left <= 0) return Wait::kTimeout;
    std::array<pollfd, 2> entries = {
        {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
         {.fd = socket, .events = events, .revents = 0}}};
    poll(entries.data(), entries.size(),
         static_cast<int>(std::min<int64_t>(left / 1'000'000 + 1, 60'000)));
    if (entries[0].revents != 0) {
      clear_event(wake_);
      if (is_stopping()) return Wait::kStopped;
    }
    if (socket >= 0 && entries[1].revents != 0) return Wait::kReady;
  }
}

bool NodeLink::Loop::find_host() {
  std::string problem;
  double pause = kFirstPauseSeconds;
  while (true) {
    if (try_addresses(problem)) return true;
    if (is_stopping()) return false;
    if (base::monotonic_ns() >= deadline_ns_) break;
    if (wait_for(-1, 0, after_seconds(pause)) == Wait::kStopped) return false;
    pause = std::min(2 * pause, kLongestPauseSeconds);
  }
  lose(LinkLoss::Kind::kNotFound,
       fmt::format("no launcher of this job was found at {} within {}: {}; "
                   "start it on that machine, check address, port and "
                   "firewall, or set another limit (--rdzv-conf "
                   "join_timeout=SECONDS)",
                   address(), base::duration_text(config_.join_seconds),
                   problem));
  return false;
}

bool NodeLink::Loop::try_addresses(std::string& problem) {
  const net::Resolution found = net::resolve(config_.host, config_.port);
  if (found.addresses.empty()) problem = found.error;
  for (const net::SocketAddress& candidate : found.addresses) {
    base::FileDescriptor socket = connect_to(candidate, problem);
    if (socket && shake_hands(socket, problem)) {
      socket_ = std::move(socket);
      return true;
    }
    if (is_stopping()) return false;
  }
  return false;
}

base::FileDescriptor NodeLink::Loop::connect_to(
    const net::SocketAddress& address, std::string& problem) {
  base::FileDescriptor result(
      socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result) return {};
  if (connect(result.get(), address.get(), address.size) != 0 &&
      errno != EINPROGRESS) {
    problem = base::errno_text();
    return {};
  }
  if (wait_for(result.get(), POLLOUT, after_seconds(kConnectSeconds)) !=
      Wait::kReady) {
    problem = "it does not answer";
    return {};
  }
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(result.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    errno = error;
    problem = base::errno_text();
    return {};
  }
  const int on = 1;
  setsockopt(result.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return result;
}

// False: a busy host may have closed the connection, or it is not one of ours.
bool NodeLink::Loop::shake_hands(const base::FileDescriptor& socket,
                                 std::string& problem) {
  const int64_t deadline_ns = after_seconds(kHandshakeSeconds);
  ClientHandshake handshake(config_.job);
  const auto say = [&socket](const std::string& bytes) {
    // So few bytes always have room.
    const ssize_t count [[maybe_unused]] =
        ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  };
  say(handshake.hello());
  std::array<char, 1024> buffer;
  while (!handshake.keys()) {
    if (wait_for(socket.get(), POLLIN, deadline_ns) != Wait::kReady) {
      problem = "what listens there does not answer as a launcher";
      return false;
    }
    const ssize_t count = read(socket.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) {
      problem = "what listens there closes the connection";
      return false;
    }
    std::string reply;
    try {
      handshake.receive({buffer.data(), static_cast<size_t>(count)}, reply);
    } catch (const FormatError&) {
      throw ConfigError("what listens there is not a launcher of Lockstep");
    } catch (const ConfigError&) {
      say(reply);
      throw;
    }
    say(reply);
  }
  reader_.emplace(handshake.keys()->to_client);
  writer_.emplace(handshake.keys()->to_server);
  reader_->append(handshake.rest());
  heard_ns_ = base::monotonic_ns();
  next_alive_ns_ = after_seconds(config_.alive_seconds);
  return true;
}

// This thread may have had no CPU for longer than the host was silent.
bool NodeLink::Loop::has_input() const {
  pollfd entry{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) == 1;
}

void NodeLink::Loop::talk() {
  const double silence = config_.alive_seconds * config_.max_missed;
  const auto limit_ns =
      static_cast<int64_t>(silence * double{base::kNsPerSecond});
  while (!is_stopping()) {
    send_all();
    const int64_t now = base::monotonic_ns();
    if (now - heard_ns_ >= limit_ns && !has_input()) {
      throw PeerError("no sign of life for " + base::duration_text(silence));
    }
    const int64_t deadline_ns =
        std::max(now, std::min(next_alive_ns_, heard_ns_ + limit_ns));
    std::array<pollfd, 2> entries = {
        {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
         {.fd = socket_.get(),
          .events =
              static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT),
          .revents = 0}}};
    poll(entries.data(), entries.size(),
         static_cast<int>(std::clamp<int64_t>(
             (deadline_ns - now) / 1'000'000 + 1, 0, 60'000)));
    if (entries[0].revents != 0) clear_event(wake_);
    if ((entries[1].revents & ~POLLOUT) != 0) receive_all();
  }
  send_all();  // Last words, as far as the socket takes them.
}

void NodeLink::Loop::send_all() {
  std::vector<Message> messages;
  {
    const std::lock_guard lock(mutex_);
    messages = std::exchange(to_send_, {});
    if (!is_known_) {
      early_.insert(early_.end(), messages.begin(), messages.end());
    }
    if (base::monotonic_ns() >= next_alive_ns_) {
      messages.emplace_back(Alive{.is_stuck = is_stuck_});
      next_alive_ns_ = after_seconds(config_.alive_seconds);
    }
  }
  for (const Message& message : messages) {
    unsent_ += writer_->write(encode(message));
  }
  flush();
}

void NodeLink::Loop::flush() {
  while (!unsent_.empty()) {
    const ssize_t count = ::send(socket_.get(), unsent_.data(), unsent_.size(),
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      unsent_.erase(0, static_cast<size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    // What the host has sent before is still to be read.
    if (errno != EAGAIN) unsent_.clear();
    return;
  }
}

// A host that still hears this node must not take the end of the connection for
// that of the launcher.
void NodeLink::Loop::send_goodbye() {
  if (!writer_) return;
  unsent_ += writer_->write(encode(Abandon{}));
  flush();
}

void NodeLink::Loop::receive_all() {
  std::array<char, kLinkReadBytes> buffer;
  const ssize_t count = read(socket_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count < 0) throw PeerError(base::errno_text());
  if (count == 0) throw PeerError("it was closed");
  heard_ns_ = base::monotonic_ns();
  reader_->append({buffer.data(), static_cast<size_t>(count)});
  while (const auto frame = reader_->next()) {
    Message message = decode(*frame);
    early_.clear();
    const std::lock_guard lock(mutex_);
    if (!is_known_.exchange(true)) raise_event(news_);
    if (std::holds_alternative<Alive>(message)) continue;
    received_.push_back(std::move(message));
    raise_event(news_);
  }
}

NodeLink::NodeLink(NodeLinkConfig config)
    : loop_(std::make_unique<Loop>(std::move(config))) {}

NodeLink::~NodeLink() = default;

int NodeLink::fd() const { return loop_->fd(); }

std::optional<Message> NodeLink::next() { return loop_->next(); }

std::optional<LinkLoss> NodeLink::loss() const { return loop_->loss(); }

bool NodeLink::is_found() const { return loop_->is_found(); }

void NodeLink::send(const Message& message) { loop_->send(message); }

void NodeLink::set_stuck(bool is_stuck) { loop_->set_stuck(is_stuck); }

}  // namespace lockstep::nodes
