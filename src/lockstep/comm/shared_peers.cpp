#include "lockstep/comm/shared_peers.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kNameLength = 32;
constexpr uint32_t kHelloMagic = 0x4c53584d;
constexpr std::chrono::milliseconds kPeerPause{10};

// The one message of each direction; the descriptor travels beside it. The name
// of the one who is greeted shows that the sender knows the job's store.
struct Hello {
  uint32_t magic = kHelloMagic;
  int32_t rank = -1;
  std::array<char, kNameLength> to = {};
};

std::string random_name() {
  std::array<unsigned char, kNameLength / 2> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    throw IoError("cannot draw a random name: " + base::errno_text());
  }
  std::string name;
  for (const unsigned char byte : bytes) name += fmt::format("{:02x}", byte);
  return name;
}

// An abstract address begins with a zero byte and ends with its length.
struct UnixAddress {
  sockaddr_un storage{};
  socklen_t size = 0;

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

UnixAddress abstract_address(const std::string& name) {
  const std::string path = "lockstep-" + name;
  UnixAddress address;
  address.storage.sun_family = AF_UNIX;
  const size_t length =
      std::min(path.size(), sizeof(sockaddr_un::sun_path) - 1);
  std::memcpy(address.storage.sun_path + 1, path.data(), length);
  address.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

base::FileDescriptor make_socket() {
  base::FileDescriptor socket(
      ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw IoError("cannot make a socket: " + base::errno_text());
  return socket;
}

bool is_of_user(int socket, uid_t user) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) ==
             0 &&
         credentials.uid == user;
}

// Ends a wait that has become useless.
class Patience {
 public:
  explicit Patience(const PeerExchange& exchange)
      : exchange_(exchange), deadline_(Clock::now() + exchange.timeout) {}

  void wait_for(int socket, short events) const {
    for (;;) {
      pollfd waited{.fd = socket, .events = events, .revents = 0};
      if (poll(&waited, 1, static_cast<int>(kPeerPause.count())) > 0) return;
      if (const auto reason = exchange_.find_refusal()) throw IoError(*reason);
      if (Clock::now() > deadline_) {
        throw IoError("the ranks of this machine did not meet in time");
      }
    }
  }

 private:
  const PeerExchange& exchange_;
  Clock::time_point deadline_;
};

void send_hello(int socket, const Hello& hello, int memory) {
  Hello message = hello;
  iovec part{.iov_base = &message, .iov_len = sizeof(message)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* passed = CMSG_FIRSTHDR(&header);
  passed->cmsg_level = SOL_SOCKET;
  passed->cmsg_type = SCM_RIGHTS;
  passed->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(passed), &memory, sizeof(int));
  if (sendmsg(socket, &header, MSG_NOSIGNAL) !=
      static_cast<ssize_t>(sizeof(message))) {
    throw IoError("cannot pass memory to another rank: " + base::errno_text());
  }
}

struct Greeting {
  Hello hello;
  base::FileDescriptor memory;
};

// No value when what came is no greeting.
std::optional<Greeting> receive_hello(int socket) {
  Greeting greeting;
  iovec part{.iov_base = &greeting.hello, .iov_len = sizeof(Hello)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t length = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  const cmsghdr* passed = CMSG_FIRSTHDR(&header);
  if (passed != nullptr && passed->cmsg_type == SCM_RIGHTS &&
      passed->cmsg_len == CMSG_LEN(sizeof(int))) {
    int memory = -1;
    std::memcpy(&memory, CMSG_DATA(passed), sizeof(int));
    greeting.memory = base::FileDescriptor(memory);
  }
  if (length != static_cast<ssize_t>(sizeof(Hello)) || !greeting.memory ||
      greeting.hello.magic != kHelloMagic) {
    return std::nullopt;
  }
  return greeting;
}

Hello make_hello(const PeerExchange& exchange, int to) {
  Hello hello;
  hello.rank = exchange.rank;
  std::memcpy(hello.to.data(), exchange.names[to].data(),
              std::min(exchange.names[to].size(), hello.to.size()));
  return hello;
}

bool is_for(const Hello& hello, const std::string& name) {
  return std::string_view(hello.to.data(), hello.to.size()) == name;
}

base::FileDescriptor call_peer(const PeerExchange& exchange, int rank) {
  base::FileDescriptor socket = make_socket();
  const UnixAddress address = abstract_address(exchange.names[rank]);
  if (connect(socket.get(), address.get(), address.size) != 0) {
    throw IoError(
        fmt::format("rank {} is not reached through a unix socket "
                    "(another network namespace?): {}",
                    rank, base::errno_text()));
  }
  if (!is_of_user(socket.get(), exchange.user)) {
    throw IoError(fmt::format("rank {} runs as another user", rank));
  }
  send_hello(socket.get(), make_hello(exchange, rank), exchange.own_memory);
  return socket;
}

// Whoever is no higher rank of this job is sent away.
void accept_peer(const PeerExchange& exchange, const Patience& patience,
                 std::vector<Peer>& peers) {
  patience.wait_for(exchange.listener->socket.get(), POLLIN);
  base::FileDescriptor socket(accept4(exchange.listener->socket.get(), nullptr,
                                      nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket || !is_of_user(socket.get(), exchange.user)) return;
  patience.wait_for(socket.get(), POLLIN);
  auto greeting = receive_hello(socket.get());
  if (!greeting || !is_for(greeting->hello, exchange.listener->name)) return;
  const int rank = greeting->hello.rank;
  if (rank <= exchange.rank || rank >= static_cast<int>(peers.size()) ||
      peers[rank].socket) {
    return;
  }
  send_hello(socket.get(), make_hello(exchange, rank), exchange.own_memory);
  peers[rank] = {std::move(socket), std::move(greeting->memory)};
}

bool has_higher(const std::vector<Peer>& peers, int rank) {
  for (size_t other = rank + 1; other < peers.size(); ++other) {
    if (!peers[other].socket) return false;
  }
  return true;
}

}  // namespace

PeerListener listen_for_peers(int num_ranks) {
  PeerListener listener{.name = random_name(), .socket = make_socket()};
  const UnixAddress address = abstract_address(listener.name);
  if (bind(listener.socket.get(), address.get(), address.size) != 0 ||
      listen(listener.socket.get(), num_ranks) != 0) {
    throw IoError("cannot listen at a unix socket: " + base::errno_text());
  }
  return listener;
}

// Lower ranks are called, higher ones call.
std::vector<Peer> exchange_descriptors(const PeerExchange& exchange) {
  std::vector<Peer> peers(exchange.names.size());
  const Patience patience(exchange);
  for (int rank = 0; rank < exchange.rank; ++rank) {
    peers[rank].socket = call_peer(exchange, rank);
  }
  while (!has_higher(peers, exchange.rank)) {
    accept_peer(exchange, patience, peers);
  }
  for (int rank = 0; rank < exchange.rank; ++rank) {
    patience.wait_for(peers[rank].socket.get(), POLLIN);
    auto greeting = receive_hello(peers[rank].socket.get());
    if (!greeting || greeting->hello.rank != rank) {
      throw IoError(fmt::format("rank {} did not pass its memory", rank));
    }
    peers[rank].memory = std::move(greeting->memory);
  }
  return peers;
}

bool is_gone(const Peer& peer) {
  pollfd asked{
      .fd = peer.socket.get(), .events = POLLIN | POLLRDHUP, .revents = 0};
  return poll(&asked, 1, 0) > 0;
}

}  // namespace lockstep::comm
