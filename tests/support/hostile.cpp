#include "support/hostile.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <random>
#include <string>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/nodes/handshake.h"

namespace lockstep::testing {
namespace {

constexpr size_t kMostOpen = 300;
constexpr int kNumKinds = 8;
constexpr int kTrickle = 7;
constexpr int64_t kLongestAnswerNs = 60 * base::kNsPerSecond;

std::string noise(std::mt19937& random, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(random());
  return bytes;
}

// What a stranger of this kind says first.
std::string words_of(int kind, std::mt19937& random) {
  const std::string magic = "lockstep nodes\r\n";
  const std::string version = {static_cast<char>(nodes::kProtocolVersion),
                               '\0'};
  switch (kind) {
    case 0: return "";  // Nothing: left open.
    case 1: return "GET / HTTP/1.1\r\nHost: box\r\n\r\n";
    case 2: return noise(random, 1 + random() % 4000);
    case 3:
      return magic.substr(0, random() % magic.size());   // Half, and no more.
    case 4: return magic + version + noise(random, 64);  // Another job.
    case 5: return magic + std::string("\7\0", 2) + noise(random, 64);
    case kTrickle: return magic + version + noise(random, 64);
    default: return magic + version + noise(random, 64 + 32 + 100);
  }
}

base::FileDescriptor connect_to(int port) {
  base::FileDescriptor result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (connect(result.get(), reinterpret_cast<sockaddr*>(&address),
              sizeof(address)) != 0) {
    return {};
  }
  // Closing resets the connection: the ports of this machine do not run out.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(result.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  return result;
}

struct Stranger {
  base::FileDescriptor socket;
  int kind = 0;
  std::string rest;  // said a byte at a time

  // The host has an answer to what it says: none to silence and halves.
  bool expects_an_end() const {
    return kind != 0 && kind != 3 && kind != kTrickle;
  }

  void say(size_t size) {
    const std::string bytes = rest.substr(0, size);
    rest.erase(0, size);
    send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Returns when the host has closed the connection. One that is reset before a
  // busy host reads from it has said nothing.
  void wait_for_end(int64_t deadline_ns) const {
    std::array<char, 4096> answer;
    for (;;) {
      const int64_t left_ms = (deadline_ns - base::monotonic_ns()) / 1'000'000;
      pollfd entry{.fd = socket.get(), .events = POLLIN, .revents = 0};
      if (left_ms <= 0 || poll(&entry, 1, static_cast<int>(left_ms)) <= 0) {
        return;
      }
      if (recv(socket.get(), answer.data(), answer.size(), 0) <= 0) return;
    }
  }
};

}  // namespace

HostileCounts connect_as_stranger(int port, int64_t count) {
  std::mt19937 random(7);
  std::deque<Stranger> open;
  HostileCounts counts;
  for (int64_t i = 0; i < count; ++i) {
    base::FileDescriptor socket = connect_to(port);
    if (!socket) {
      ++counts.refused;
      continue;
    }
    ++counts.opened;
    const auto kind = static_cast<int>(i % kNumKinds);
    open.push_back({std::move(socket), kind, words_of(kind, random)});
    if (kind != kTrickle) open.back().say(open.back().rest.size());
    if (open.size() > kMostOpen) open.pop_front();
    for (Stranger& stranger : open) {
      if (!stranger.rest.empty()) stranger.say(1);
    }
  }
  const int64_t deadline = base::monotonic_ns() + kLongestAnswerNs;
  for (const Stranger& stranger : open) {
    if (stranger.expects_an_end()) stranger.wait_for_end(deadline);
  }
  return counts;
}

}  // namespace lockstep::testing
