#include "lockstep/launch/listeners.h"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

// Rows look like "0: 00000000:1F90 00000000:0000 0A ..."; address and port are
// hexadecimal, state 0A is LISTEN, the tenth word is the inode of the socket.
std::vector<std::string> inodes_of_listeners(int port) {
  std::vector<std::string> found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::istringstream rows(base::try_read_file(table).value_or(""));
    std::string row;
    std::getline(rows, row);  // the titles
    while (std::getline(rows, row)) {
      std::istringstream words(row);
      std::array<std::string, 10> word;
      for (std::string& text : word) words >> text;
      const auto colon = word[1].rfind(':');
      if (colon == std::string::npos) continue;
      int number = -1;
      std::from_chars(word[1].data() + colon + 1,
                      word[1].data() + word[1].size(), number, 16);
      if (number == port && word[3] == "0A") found.push_back(word[9]);
    }
  }
  return found;
}

bool holds_socket(const std::string& pid, const std::string& link) {
  const std::string path = "/proc/" + pid + "/fd";
  const Folder folder(opendir(path.c_str()), closedir);
  if (folder == nullptr) return false;
  std::array<char, 64> target{};
  while (const dirent* entry = readdir(folder.get())) {
    const ssize_t size = readlink((path + "/" + entry->d_name).c_str(),
                                  target.data(), target.size());
    if (size > 0 &&
        std::string_view(target.data(), static_cast<size_t>(size)) == link) {
      return true;
    }
  }
  return false;
}

std::optional<ProcessInfo> holder_of(const std::string& inode) {
  const Folder folder(opendir("/proc"), closedir);
  if (folder == nullptr) return std::nullopt;
  const std::string link = "socket:[" + inode + "]";
  while (const dirent* entry = readdir(folder.get())) {
    const auto pid = base::parse_integer(entry->d_name);
    if (pid && holds_socket(entry->d_name, link)) {
      return find_process(static_cast<pid_t>(*pid));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<ProcessInfo> find_port_holder(int port) {
  for (const std::string& inode : inodes_of_listeners(port)) {
    if (auto holder = holder_of(inode)) return holder;
  }
  return std::nullopt;
}

}  // namespace lockstep::launch
