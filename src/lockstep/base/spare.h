// A spare process: a worker that its launcher has started before any rank needs
// it. It waits, with its libraries loaded, until it is told which rank it
// becomes.
//
// Both sides hold one end of a socket that keeps messages apart
// (SOCK_SEQPACKET).
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"

namespace lockstep::base {

// The descriptor of the socket, inherited from the launcher.
constexpr const char* kSpareVariable = "LOCKSTEP_SPARE_FD";
// Command of a worker that waits, in the place of the one that it becomes: as
// long as that, so that it can be overwritten where the system shows it.
constexpr const char* kSpareCommand = "spare";
constexpr const char* kSpareBecomes = "train";

// What a process gets that is started as a rank.
struct RankStart {
  std::vector<std::string> arguments = {};  // without the program's name
  Environment environment = {};
  int stdout_fd = -1;
  int stderr_fd = -1;
  // By the variable whose value is the number of the descriptor.
  std::map<std::string, int> descriptors = {};
};

// The launcher's side, which never waits.

// The process that has said that it waits; no value: it has not, since the last
// call.
std::optional<pid_t> waiting_spare(int socket);
// No spare process holds the other end any more.
bool spare_has_ended(int socket);
// The descriptors are copied into the other process. False: it has ended, or
// the environment is too large for one message.
bool send_rank_start(int socket, const RankStart& start);

// The spare's side.

// That this process waits.
void tell_waiting(int socket);
// Waits. No value: the launcher needs no spare process any more. The
// environment names the descriptors by their numbers in this process, which
// the caller owns.
std::optional<RankStart> receive_rank_start(int socket);

}  // namespace lockstep::base
