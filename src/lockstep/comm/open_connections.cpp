#include "lockstep/comm/open_connections.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <memory>

#include "lockstep/base/files.h"

namespace lockstep::comm {
namespace {

bool is_tcp_connection(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
         (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

// Calls `use` with a duplicate of each descriptor, which stays the same socket
// when another thread closes or reuses the number meanwhile.
void for_each_connection(const std::function<void(int fd, ino_t inode)>& use) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"),
                                                   closedir);
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    const int fd = std::atoi(entry->d_name);
    struct stat status{};
    if (fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
    const base::FileDescriptor same(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!same || fstat(same.get(), &status) != 0) continue;
    if (is_tcp_connection(same.get())) use(same.get(), status.st_ino);
  }
}

std::set<ino_t> connections() {
  std::set<ino_t> inodes;
  for_each_connection([&](int, ino_t inode) { inodes.insert(inode); });
  return inodes;
}

}  // namespace

void OpenConnections::begin() {
  const std::lock_guard lock(mutex_);
  before_ = connections();
  own_.reset();
}

void OpenConnections::end() {
  const std::lock_guard lock(mutex_);
  if (!before_) return;
  own_ = connections();
  for (const ino_t inode : *before_) own_->erase(inode);
  before_.reset();
}

void OpenConnections::forget() {
  const std::lock_guard lock(mutex_);
  before_.reset();
  own_.reset();
}

void OpenConnections::shut_down() {
  shut_down_if([] { return true; });
}

void OpenConnections::shut_down_if(const std::function<bool()>& is_due) {
  const std::lock_guard lock(mutex_);
  if ((!before_ && !own_) || !is_due()) return;
  for_each_connection([this](int fd, ino_t inode) {
    const bool is_ours =
        own_ ? own_->contains(inode) : !before_->contains(inode);
    if (is_ours) shutdown(fd, SHUT_RDWR);
  });
}

}  // namespace lockstep::comm
