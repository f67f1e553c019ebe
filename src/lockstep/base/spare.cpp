#include "lockstep/base/spare.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "lockstep/base/exec_arrays.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::base {
namespace {

constexpr std::string_view kSeparator("\0", 1);  // No text holds it.
constexpr size_t kMostDescriptors = 16;

// Room for descriptors beside a message, aligned as the kernel wants it.
struct alignas(cmsghdr) DescriptorSpace {
  std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> bytes{};
};

// Each list with its length in front; the environment is the rest.
std::string packed(const RankStart& start) {
  std::vector<std::string> words = {std::to_string(start.arguments.size())};
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  words.push_back(std::to_string(start.descriptors.size()));
  for (const auto& [name, fd] : start.descriptors) words.push_back(name);
  const auto entries = entries_of(start.environment);
  words.insert(words.end(), entries.begin(), entries.end());
  return join(words, kSeparator);
}

// The words of a message, one after the other.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : words_(split(text, '\0')) {}

  bool has_more() const { return next_ < words_.size(); }
  std::string word() {
    LOCKSTEP_CHECK(has_more(), "what the launcher tells a spare process");
    return words_[next_++];
  }
  std::vector<std::string> list() {
    std::vector<std::string> result(
        static_cast<size_t>(parse_integer(word()).value_or(0)));
    for (std::string& text : result) text = word();
    return result;
  }

 private:
  std::vector<std::string> words_;
  size_t next_ = 0;
};

RankStart unpacked(std::string_view text, const std::vector<int>& fds) {
  WordReader reader(text);
  RankStart start{.arguments = reader.list()};
  const std::vector<std::string> names = reader.list();
  while (reader.has_more()) {
    const std::string entry = reader.word();
    const size_t end = entry.find('=');
    start.environment[entry.substr(0, end)] = entry.substr(end + 1);
  }
  LOCKSTEP_CHECK(fds.size() == names.size() + 2,
                 "the descriptors of a spare process");
  start.stdout_fd = fds[0];
  start.stderr_fd = fds[1];
  for (size_t i = 0; i < names.size(); ++i) {
    start.descriptors[names[i]] = fds[i + 2];
    start.environment[names[i]] = std::to_string(fds[i + 2]);
  }
  return start;
}

std::vector<int> descriptors_of(const msghdr& message) {
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return {};
  std::vector<int> fds((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  std::memcpy(fds.data(), CMSG_DATA(header), fds.size() * sizeof(int));
  return fds;
}

// The length of the next message, which stays there; 0: none comes any more.
size_t wait_for_message(int socket) {
  ssize_t size = 0;
  do {
    size = recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  return size > 0 ? static_cast<size_t>(size) : 0;
}

}  // namespace

std::optional<pid_t> waiting_spare(int socket) {
  pid_t pid = 0;
  if (recv(socket, &pid, sizeof(pid), MSG_DONTWAIT) != ssize_t{sizeof(pid)}) {
    return std::nullopt;
  }
  return pid;
}

bool spare_has_ended(int socket) {
  char said = 0;
  return recv(socket, &said, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool send_rank_start(int socket, const RankStart& start) {
  std::vector<int> fds = {start.stdout_fd, start.stderr_fd};
  for (const auto& [name, fd] : start.descriptors) fds.push_back(fd);
  LOCKSTEP_CHECK(fds.size() <= kMostDescriptors, "descriptors of a rank");
  std::string text = packed(start);
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  DescriptorSpace space;
  const size_t num_bytes = fds.size() * sizeof(int);
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.bytes.data();
  message.msg_controllen = CMSG_SPACE(num_bytes);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(num_bytes);
  std::memcpy(CMSG_DATA(header), fds.data(), num_bytes);
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

void tell_waiting(int socket) {
  const pid_t pid = getpid();
  // Without a launcher the next call learns of it.
  send(socket, &pid, sizeof(pid), MSG_NOSIGNAL);
}

std::optional<RankStart> receive_rank_start(int socket) {
  std::string text(wait_for_message(socket), '\0');
  if (text.empty()) return std::nullopt;
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  DescriptorSpace space;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.bytes.data();
  message.msg_controllen = space.bytes.size();
  if (recvmsg(socket, &message, 0) <= 0) return std::nullopt;
  return unpacked(text, descriptors_of(message));
}

}  // namespace lockstep::base
