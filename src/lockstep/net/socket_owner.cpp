#include "lockstep/net/socket_owner.h"

#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>
#include <string>

#include "lockstep/base/strings.h"
#include "lockstep/net/address.h"

namespace lockstep::net {
namespace {

// Both ends of a connection, in network byte order. IPv4 addresses take the
// first word, also those that an IPv6 socket shows as ::ffff:a.b.c.d.
struct Ends {
  int family = AF_INET;
  std::array<uint32_t, 4> local{};
  std::array<uint32_t, 4> remote{};
  uint16_t local_port = 0;
  uint16_t remote_port = 0;
};

bool read_end(const SocketAddress& address, int& family,
              std::array<uint32_t, 4>& words, uint16_t& port) {
  if (address.size == 0) return false;
  if (address.family() == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(address.storage);
    family = AF_INET;
    words = {ip.sin_addr.s_addr, 0, 0, 0};
    port = ip.sin_port;
    return true;
  }
  if (address.family() != AF_INET6) return false;
  const auto& ip = reinterpret_cast<const sockaddr_in6&>(address.storage);
  std::memcpy(words.data(), &ip.sin6_addr, sizeof(words));
  port = ip.sin6_port;
  family = AF_INET6;
  if (IN6_IS_ADDR_V4MAPPED(&ip.sin6_addr)) {
    family = AF_INET;
    words = {words[3], 0, 0, 0};
  }
  return true;
}

// As the other side sees it: its local end is our remote one.
bool ends_of_peer(int socket, Ends& ends) {
  int other_family = 0;
  return read_end(peer_address_of(socket), ends.family, ends.local,
                  ends.local_port) &&
         read_end(local_address_of(socket), other_family, ends.remote,
                  ends.remote_port) &&
         ends.family == other_family;
}

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

bool ask(int netlink, const Ends& ends) {
  Question question{};
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = question.request;
  request.sdiag_family = static_cast<uint8_t>(ends.family);
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = ~0U;
  request.id.idiag_sport = ends.local_port;
  request.id.idiag_dport = ends.remote_port;
  std::copy(ends.local.begin(), ends.local.end(), request.id.idiag_src);
  std::copy(ends.remote.begin(), ends.remote.end(), request.id.idiag_dst);
  request.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return send(netlink, &question, sizeof(question), 0) == sizeof(question);
}

// Whether the kernel answered, and whom it named.
struct Answer {
  bool is_there = false;
  std::optional<uid_t> owner = std::nullopt;
};

Answer read_answer(int netlink, const Ends& ends) {
  alignas(nlmsghdr) std::array<char, 4096> buffer{};
  const ssize_t count = recv(netlink, buffer.data(), buffer.size(), 0);
  const auto* header = reinterpret_cast<const nlmsghdr*>(buffer.data());
  if (count < ssize_t{sizeof(nlmsghdr)}) return {};
  if (header->nlmsg_type == NLMSG_ERROR) {
    const auto* error = static_cast<const nlmsgerr*>(NLMSG_DATA(header));
    return {.is_there = error->error == -ENOENT};
  }
  if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      count < ssize_t{NLMSG_LENGTH(sizeof(inet_diag_msg))}) {
    return {};
  }
  const auto* found = static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
  // A listener at that port also matches, and a socket that nobody holds any
  // more has no inode and shows uid 0.
  const bool is_peer = found->idiag_state != TCP_LISTEN &&
                       found->id.idiag_sport == ends.local_port &&
                       found->id.idiag_dport == ends.remote_port &&
                       found->idiag_inode != 0;
  if (!is_peer) return {.is_there = true};
  return {.is_there = true, .owner = found->idiag_uid};
}

std::string table_text(int family, const std::array<uint32_t, 4>& words,
                       uint16_t port) {
  std::string text;
  const size_t num_words = family == AF_INET ? 1 : 4;
  for (size_t i = 0; i < num_words; ++i) {
    text += fmt::format("{:08X}", words[i]);
  }
  return text + fmt::format(":{:04X}", ntohs(port));
}

// Rows: number, local end, remote end, state, queues, timer, retransmits, uid,
// timeout, inode.
std::optional<uid_t> find_in_table(const char* path, const std::string& local,
                                   const std::string& remote) {
  std::istringstream rows(base::try_read_file(path).value_or(""));
  std::string row;
  while (std::getline(rows, row)) {
    std::istringstream words(row);
    std::array<std::string, 10> word;
    for (std::string& text : word) words >> text;
    if (word[1] != local || word[2] != remote || word[9] == "0") continue;
    if (const auto uid = base::parse_integer(word[7])) {
      return static_cast<uid_t>(*uid);
    }
  }
  return std::nullopt;
}

std::optional<uid_t> find_in_tables(const Ends& ends) {
  const auto text = [&](const auto& words, uint16_t port) {
    return table_text(ends.family, words, port);
  };
  const std::string local = text(ends.local, ends.local_port);
  const std::string remote = text(ends.remote, ends.remote_port);
  if (ends.family == AF_INET6) {
    return find_in_table("/proc/net/tcp6", local, remote);
  }
  if (const auto uid = find_in_table("/proc/net/tcp", local, remote)) {
    return uid;
  }
  // An IPv6 socket with an IPv4 peer stands in the other table.
  const std::string mapped =
      fmt::format("{:08X}{:08X}{:08X}", 0, 0, htonl(0xFFFF));
  return find_in_table("/proc/net/tcp6", mapped + local, mapped + remote);
}

}  // namespace

SocketOwners::SocketOwners()
    : netlink_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
  if (!netlink_) return;
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  setsockopt(netlink_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

std::optional<uid_t> SocketOwners::owner_of_peer(int socket) const {
  Ends ends;
  if (!ends_of_peer(socket, ends)) return std::nullopt;
  if (netlink_ && ask(netlink_.get(), ends)) {
    const Answer answer = read_answer(netlink_.get(), ends);
    if (answer.is_there) return answer.owner;
  }
  return find_in_tables(ends);
}

}  // namespace lockstep::net
