// The errors that leave this library.
//
// One base class, one derived class per thing the reader can do about it. A
// message says what happened, with values, and what to do next. The library
// never prints or exits: a program maps an error to its exit code.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "lockstep/export.h"

namespace lockstep {

class LOCKSTEP_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user can fix it: a bad flag, environment variable or setting.
class LOCKSTEP_EXPORT ConfigError : public Error {
 public:
  using Error::Error;
};

// A file, folder or socket of this machine failed.
class LOCKSTEP_EXPORT IoError : public Error {
 public:
  using Error::Error;
};

// The bytes of a file are not what they should be.
class LOCKSTEP_EXPORT FormatError : public Error {
 public:
  using Error::Error;
};

// Another rank failed, left or disagrees; the group cannot be used again.
class LOCKSTEP_EXPORT PeerError : public Error {
 public:
  using Error::Error;
};

// Nothing failed yet, but the deadline passed. The group is unusable after it.
class LOCKSTEP_EXPORT TimeoutError : public PeerError {
 public:
  using PeerError::PeerError;
};

// The GPU, its driver or its memory.
class LOCKSTEP_EXPORT DeviceError : public Error {
 public:
  using Error::Error;
};

// A bug in Lockstep.
class LOCKSTEP_EXPORT InternalError : public Error {
 public:
  using Error::Error;
};

// Exit codes of the programs: 2 Config, 3 Io, 4 Format, 5 Peer, 6 Timeout, 7
// Device, 70 Internal, 1 anything else.
LOCKSTEP_EXPORT int exit_code(const std::exception& error);
constexpr int kPeerExitCode = 5;
constexpr int kTimeoutExitCode = 6;

// "TimeoutError", for error files; the type's own name for errors of other
// libraries.
LOCKSTEP_EXPORT std::string kind_name(const std::exception& error);

// Throws InternalError. For conditions that only a bug can break, never for
// user input.
[[noreturn]] LOCKSTEP_EXPORT void internal_error(const char* file, int line,
                                                 const std::string& what);

}  // namespace lockstep

#define LOCKSTEP_CHECK(condition, message)                                  \
  do {                                                                      \
    if (!(condition)) {                                                     \
      ::lockstep::internal_error(__FILE__, __LINE__,                        \
                                 std::string(#condition ": ") + (message)); \
    }                                                                       \
  } while (false)
