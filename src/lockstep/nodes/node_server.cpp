#include "lockstep/nodes/node_server.h"

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
#include <optional>
#include <thread>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/net/address.h"

namespace lockstep::nodes {
namespace {

// What epoll gives back instead of a member.
constexpr MemberId kStop = 1;
constexpr MemberId kListener = 2;
constexpr MemberId kFirstMember = 3;

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr int kAcceptsAtOnce = 64;
constexpr size_t kBatch = 64;
// A node that does not read what it is sent.
constexpr size_t kMaxUnsentBytes = size_t{64} << 20;
// Without a descriptor left, accepting is tried again after this time.
constexpr std::chrono::milliseconds kPause{100};

int64_t ns_of(std::chrono::milliseconds time) {
  return std::chrono::nanoseconds(time).count();
}

Moment moment_now() {
  return {.ns = base::monotonic_ns(),
          .unix = std::chrono::duration<double>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count()};
}

struct Peer {
  Peer(base::FileDescriptor connected, const JobIdentity& job,
       int64_t deadline_in_ns)
      : socket(std::move(connected)),
        address(net::peer_address_of(socket.get()).text()),
        handshake(job),
        deadline_ns(deadline_in_ns) {}

  base::FileDescriptor socket;
  std::string address;  // of a connection that is reset there is none later
  ServerHandshake handshake;
  int64_t deadline_ns;  // of the handshake
  std::optional<FrameReader> reader = {};
  std::optional<FrameWriter> writer = {};
  std::string unsent = {};
  uint32_t events = EPOLLIN;
  bool is_dismissed = false;

  bool is_stranger() const { return !reader; }
};

}  // namespace

class NodeServer::Loop {
 public:
  Loop(base::FileDescriptor listener, NodeServerConfig config);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  RefusalLog& refusals() { return refusals_; }

 private:
  void run();
  void serve();
  bool has_ended();
  bool has_heard_all(int num_events);
  int milliseconds_to_wait() const;
  void watch(int fd, MemberId id, uint32_t events, int operation);
  void accept_all();
  void stop_listening();
  void make_room();
  void admit(base::FileDescriptor socket);
  void handle(MemberId id, uint32_t events);
  void receive(MemberId id);
  void greet(MemberId id, Peer& peer, std::string_view bytes);
  void pass_on_frames(MemberId id, Peer& peer);
  void deliver();
  void flush(MemberId id);
  void drop(MemberId id, const std::string& why, Fate fate = Fate::kUnknown);
  void drop_late_strangers();
  void refuse(MemberId stranger, const std::string& reason);

  NodeServerConfig config_;
  base::FileDescriptor listener_;
  Rounds rounds_;
  base::FileDescriptor epoll_;
  base::FileDescriptor stop_;
  std::map<MemberId, Peer> peers_;
  std::deque<MemberId> strangers_;  // the oldest first
  std::vector<std::pair<MemberId, std::string>> broken_;
  MemberId next_id_ = kFirstMember;
  size_t num_full_batches_ = 0;  // one after the other
  int64_t paused_until_ns_ = 0;
  int64_t stopped_ns_ = 0;  // 0: not asked to stop
  RefusalLog refusals_;
  std::thread thread_;
};

NodeServer::Loop::Loop(base::FileDescriptor listener, NodeServerConfig config)
    : config_(std::move(config)),
      listener_(std::move(listener)),
      rounds_(config_.rounds, moment_now()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !stop_) {
    throw IoError("cannot serve the other nodes: " + base::errno_text());
  }
  watch(stop_.get(), kStop, EPOLLIN, EPOLL_CTL_ADD);
  watch(listener_.get(), kListener, EPOLLIN, EPOLL_CTL_ADD);
  // The thread inherits the mask: signals are for the others.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

NodeServer::Loop::~Loop() {
  const uint64_t one = 1;
  const ssize_t written [[maybe_unused]] =
      write(stop_.get(), &one, sizeof(one));
  thread_.join();
}

void NodeServer::Loop::watch(int fd, MemberId id, uint32_t events,
                             int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_.get(), operation, fd, &event);
}

void NodeServer::Loop::run() {
  pthread_setname_np(pthread_self(), "lockstep-nodes");
  try {
    serve();
  } catch (const std::exception&) {
    // Only for want of memory: the nodes see their connections close.
    peers_.clear();
  }
}

// Everybody has got the last words, or does not take them.
bool NodeServer::Loop::has_ended() {
  if (stopped_ns_ == 0) return false;
  if (base::monotonic_ns() >= stopped_ns_ + ns_of(config_.farewell))
    return true;
  return std::none_of(peers_.begin(), peers_.end(), [](const auto& entry) {
    return !entry.second.is_stranger();
  });
}

void NodeServer::Loop::serve() {
  std::array<epoll_event, kBatch> events;
  while (!has_ended()) {
    // Who was silent until this moment has nothing that could be read below,
    // however long this thread had no CPU.
    const Moment asked = moment_now();
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                   milliseconds_to_wait());
    for (int i = 0; i < count; ++i) {
      const MemberId id = events[static_cast<size_t>(i)].data.u64;
      if (id == kStop) {
        stopped_ns_ = base::monotonic_ns();
        watch(stop_.get(), kStop, 0, EPOLL_CTL_DEL);
        stop_listening();
      } else if (id == kListener) {
        accept_all();
      } else {
        handle(id, events[static_cast<size_t>(i)].events);
      }
    }
    drop_late_strangers();
    if (has_heard_all(count)) rounds_.tick(asked);
    deliver();
    if (paused_until_ns_ != 0 && base::monotonic_ns() >= paused_until_ns_ &&
        stopped_ns_ == 0) {
      paused_until_ns_ = 0;
      if (listener_) watch(listener_.get(), kListener, EPOLLIN, EPOLL_CTL_ADD);
    }
  }
}

// Another may then listen at this address.
void NodeServer::Loop::stop_listening() {
  if (!listener_) return;
  watch(listener_.get(), kListener, 0, EPOLL_CTL_DEL);
  listener_.reset();
}

// After a full batch others may wait to be read; strangers without end must not
// stop the clock.
bool NodeServer::Loop::has_heard_all(int num_events) {
  if (num_events == static_cast<int>(kBatch) &&
      ++num_full_batches_ <= peers_.size() / kBatch + 1) {
    return false;
  }
  num_full_batches_ = 0;
  return true;
}

int NodeServer::Loop::milliseconds_to_wait() const {
  int64_t next = rounds_.next_deadline_ns();
  if (paused_until_ns_ != 0) next = std::min(next, paused_until_ns_);
  if (!strangers_.empty()) {
    next = std::min(next, peers_.at(strangers_.front()).deadline_ns);
  }
  if (stopped_ns_ != 0) {
    next = std::min(next, stopped_ns_ + ns_of(config_.farewell));
  }
  if (next == INT64_MAX) return -1;
  const int64_t left = (next - base::monotonic_ns()) / 1'000'000 + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

void NodeServer::Loop::accept_all() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    base::FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr,
                                        SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      admit(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
               errno == ENOMEM) {
      make_room();
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

// No descriptor is left.
void NodeServer::Loop::make_room() {
  if (!strangers_.empty()) {
    refuse(strangers_.front(), "it said nothing, and no descriptor was left");
    return;
  }
  watch(listener_.get(), kListener, 0, EPOLL_CTL_DEL);
  paused_until_ns_ = base::monotonic_ns() + ns_of(kPause);
}

void NodeServer::Loop::admit(base::FileDescriptor socket) {
  // All nodes of a large job may come at once.
  const size_t limit = std::max(
      config_.max_strangers, static_cast<size_t>(config_.rounds.num_nodes) * 2);
  if (strangers_.size() >= limit) {
    refuse(strangers_.front(), "too many connections that say nothing");
  }
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const MemberId id = next_id_++;
  watch(socket.get(), id, EPOLLIN, EPOLL_CTL_ADD);
  peers_.emplace(std::piecewise_construct, std::forward_as_tuple(id),
                 std::forward_as_tuple(
                     std::move(socket), config_.job,
                     base::monotonic_ns() + ns_of(config_.handshake_timeout)));
  strangers_.push_back(id);
}

void NodeServer::Loop::handle(MemberId id, uint32_t events) {
  if (!peers_.contains(id)) return;  // Dropped earlier in this round.
  if ((events & EPOLLOUT) != 0) flush(id);
  if ((events & ~uint32_t{EPOLLOUT}) != 0) receive(id);
}

void NodeServer::Loop::receive(MemberId id) {
  Peer& peer = peers_.at(id);
  std::array<char, kReadBytes> buffer;
  const ssize_t count = read(peer.socket.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0 && peer.is_stranger()) {
    refuse(id, "it closed before it said who it is");
    return;
  }
  if (count <= 0) {
    const bool is_closed = count == 0 || errno == ECONNRESET;
    if (is_closed) {
      drop(id, "its connection closed: its launcher has ended or was killed",
           Fate::kEnded);
    } else {
      drop(id, "its connection broke: " + base::errno_text());
    }
    return;
  }
  const std::string_view bytes(buffer.data(), static_cast<size_t>(count));
  try {
    if (peer.is_stranger()) {
      greet(id, peer, bytes);
    } else {
      peer.reader->append(bytes);
    }
    if (!peer.is_stranger()) pass_on_frames(id, peer);
  } catch (const FormatError& error) {
    flush(id);
    refusals_.add(error.what(), peer.address);
    drop(id, fmt::format("its launcher sent {}", error.what()));
  }
}

void NodeServer::Loop::greet(MemberId id, Peer& peer, std::string_view bytes) {
  peer.handshake.receive(bytes, peer.unsent);
  if (const auto& keys = peer.handshake.keys()) {
    peer.reader.emplace(keys->to_server);
    peer.writer.emplace(keys->to_client);
    peer.reader->append(peer.handshake.rest());
    std::erase(strangers_, id);
    // Only now the other end knows that its proof was read.
    peer.unsent += peer.writer->write(encode(Alive{}));
  }
  flush(id);
}

void NodeServer::Loop::pass_on_frames(MemberId id, Peer& peer) {
  while (const auto frame = peer.reader->next()) {
    Message message = decode(*frame);
    if (auto* join = std::get_if<Join>(&message)) join->address = peer.address;
    rounds_.receive(id, message, moment_now());
  }
}

void NodeServer::Loop::deliver() {
  do {
    for (const auto& [to, message] : rounds_.take_outgoing()) {
      const auto found = peers_.find(to);
      if (found == peers_.end() || found->second.is_stranger()) continue;
      // The next host may be on this machine.
      const auto* verdict = std::get_if<Verdict>(&message);
      if (verdict != nullptr && !verdict->departed.empty()) stop_listening();
      Peer& peer = found->second;
      peer.unsent += peer.writer->write(encode(message));
      if (peer.unsent.size() > kMaxUnsentBytes) {
        broken_.emplace_back(to, "its launcher does not read");
      } else {
        flush(to);
      }
    }
    for (const MemberId id : rounds_.take_dismissed()) {
      const auto found = peers_.find(id);
      if (found == peers_.end()) continue;
      found->second.is_dismissed = true;
      flush(id);
    }
    for (const MemberId id : rounds_.take_lost()) drop(id, "");
    for (const auto& [id, why] : std::exchange(broken_, {})) drop(id, why);
    // Losing one may end the attempt of the others.
  } while (rounds_.has_outgoing());
}

void NodeServer::Loop::flush(MemberId id) {
  Peer& peer = peers_.at(id);
  size_t sent = 0;
  while (sent < peer.unsent.size()) {
    const ssize_t count =
        send(peer.socket.get(), peer.unsent.data() + sent,
             peer.unsent.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else {
      if (count < 0 && (errno == ECONNRESET || errno == EPIPE)) {
        sent = peer.unsent.size();  // What it has said before is read first.
      } else if (count < 0 && errno != EAGAIN) {
        broken_.emplace_back(id, "its connection broke: " + base::errno_text());
      }
      break;
    }
  }
  peer.unsent.erase(0, sent);
  // Reading goes on: the other end closes when it has got everything.
  if (peer.unsent.empty() && peer.is_dismissed) {
    shutdown(peer.socket.get(), SHUT_WR);
  }
  const uint32_t events =
      peer.unsent.empty() ? uint32_t{EPOLLIN} : uint32_t{EPOLLIN} | EPOLLOUT;
  if (events == peer.events) return;
  peer.events = events;
  watch(peer.socket.get(), id, events, EPOLL_CTL_MOD);
}

void NodeServer::Loop::drop(MemberId id, const std::string& why, Fate fate) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  const bool is_stranger = found->second.is_stranger();
  peers_.erase(found);
  if (is_stranger) {
    std::erase(strangers_, id);
  } else {
    rounds_.leave(id, why, moment_now(), fate);
  }
}

void NodeServer::Loop::refuse(MemberId stranger, const std::string& reason) {
  refusals_.add(reason, peers_.at(stranger).address);
  drop(stranger, "");
}

void NodeServer::Loop::drop_late_strangers() {
  const int64_t now = base::monotonic_ns();
  while (!strangers_.empty()) {
    const MemberId id = strangers_.front();
    if (peers_.at(id).deadline_ns > now) return;
    // Where this thread had no CPU, what it has said is still to be read.
    receive(id);
    if (!strangers_.empty() && strangers_.front() == id) {
      refuse(id, "it did not say who it is in time");
    }
  }
}

NodeServer::NodeServer(base::FileDescriptor listener, NodeServerConfig config)
    : loop_(std::make_unique<Loop>(std::move(listener), std::move(config))) {}

NodeServer::~NodeServer() = default;

RefusalLog& NodeServer::refusals() { return loop_->refusals(); }

}  // namespace lockstep::nodes
