// Errors of c10d, Gloo, NCCL and CUDA in words: what it is, the likely cause,
// the next command.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace lockstep::comm {

enum class FaultKind {
  kPeerLost,
  kTimeout,
  kPortTaken,
  kNccl,
  kDuplicateGpu,
  kOutOfMemory,
  kOutOfHostMemory,
  kCuda,
  kInterface,
  kUnknown,
};

struct Fault {
  FaultKind kind = FaultKind::kUnknown;
  std::string cause;   // "another rank ended or crashed"
  std::string remedy;  // "look for the first error of the other ranks"
};

// Recognises error texts of the underlying libraries.
Fault recognise(std::string_view text);

// True for errors of libtorch, c10d, Gloo, NCCL and CUDA and for memory that
// cannot be allocated; false for those of the program.
bool is_of_libraries(const std::exception& error);

// Another rank is gone; not: it did not arrive in time.
bool is_peer_loss(const std::exception& error);

// Memory of a GPU or of the machine could not be allocated.
bool is_out_of_memory(const std::exception& error);

// The text of an error without libtorch's C++ stack.
std::string error_text(const std::exception& error);

// Throws the Error that fits: "<what was done>: <text>; <cause>; <remedy>". A
// lockstep::Error is rethrown unchanged; one that is not recognised becomes an
// Error with its text.
[[noreturn]] void throw_explained(const std::exception& error,
                                  const std::string& what_was_done);

}  // namespace lockstep::comm
