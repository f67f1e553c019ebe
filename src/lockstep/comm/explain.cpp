#include "lockstep/comm/explain.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <array>
#include <new>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

struct Pattern {
  std::string_view text;
  FaultKind kind;
  std::string_view cause;
  std::string_view remedy;
};

constexpr std::string_view kRaiseTimeout =
    "the launcher's report names the rank that stalls; --timeout SECONDS, "
    "TORCH_DISTRIBUTED_TIMEOUT or NCCL_TIMEOUT raise the limit";
constexpr std::string_view kHostMemoryRemedy =
    "use a smaller batch per process, fewer loader workers or fewer processes; "
    "'free -h', 'ulimit -v' and memory.max of the control group show the "
    "limits";
constexpr std::string_view kNcclDebug =
    "run again with NCCL_DEBUG=INFO and read the first line that says WARN";

// The first match wins: the more specific texts come first.
constexpr std::array kPatterns = {
    Pattern{"Duplicate GPU detected", FaultKind::kDuplicateGpu,
            "two ranks use one GPU",
            "start one process per GPU, or pass --share-gpus to lockstep run"},
    Pattern{"can't allocate memory", FaultKind::kOutOfHostMemory,
            "the machine's memory, or what this process may take of it, is "
            "full",
            kHostMemoryRemedy},
    Pattern{"bad_alloc", FaultKind::kOutOfHostMemory,
            "the machine's memory, or what this process may take of it, is "
            "full",
            kHostMemoryRemedy},
    Pattern{"out of memory", FaultKind::kOutOfMemory,
            "the GPU's memory is full",
            "use a smaller batch per process, more gradient accumulation or "
            "mixed precision; nvidia-smi shows who else holds memory"},
    Pattern{
        "Address already in use", FaultKind::kPortTaken,
        "another program, or a second process with RANK=0, listens there",
        "leave --master-port and MASTER_PORT out (lockstep run then takes a "
        "free one) or choose another"},
    Pattern{
        "EADDRINUSE", FaultKind::kPortTaken,
        "another program, or a second process with RANK=0, listens there",
        "leave --master-port and MASTER_PORT out (lockstep run then takes a "
        "free one) or choose another"},
    Pattern{"No interface", FaultKind::kInterface,
            "the network interface does not exist on this host",
            "set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME to one that "
            "'ip -br addr' lists, or unset them"},
    Pattern{"no socket interface found", FaultKind::kInterface,
            "the network interface does not exist on this host",
            "set NCCL_SOCKET_IFNAME to one that 'ip -br addr' lists, or unset "
            "it"},
    Pattern{"Timed out", FaultKind::kTimeout, "another rank did not arrive",
            kRaiseTimeout},
    Pattern{"timed out", FaultKind::kTimeout, "another rank did not arrive",
            kRaiseTimeout},
    Pattern{"timeout", FaultKind::kTimeout, "another rank did not arrive",
            kRaiseTimeout},
    Pattern{"ncclRemoteError", FaultKind::kPeerLost,
            "another rank ended or lost its network",
            "look for the first error of the other ranks"},
    Pattern{"Connection closed by peer", FaultKind::kPeerLost,
            "another rank ended or crashed",
            "look for the first error of the other ranks"},
    Pattern{"Connection reset by peer", FaultKind::kPeerLost,
            "another rank ended or crashed",
            "look for the first error of the other ranks"},
    Pattern{"Broken pipe", FaultKind::kPeerLost,
            "another rank ended or crashed",
            "look for the first error of the other ranks"},
    Pattern{"Failed to recv", FaultKind::kPeerLost,
            "the store is gone: its host, rank 0 or the launcher, ended",
            "look for the first error of the other ranks"},
    Pattern{"unhandled system error", FaultKind::kNccl,
            "a system call of NCCL failed: often the wrong network interface, "
            "a full /dev/shm, or peer-to-peer access blocked by the machine",
            "run again with NCCL_DEBUG=INFO; then try "
            "NCCL_SOCKET_IFNAME=<interface>, a larger /dev/shm, or "
            "NCCL_P2P_DISABLE=1"},
    Pattern{"ncclSystemError", FaultKind::kNccl, "a system call of NCCL failed",
            kNcclDebug},
    Pattern{"invalid usage", FaultKind::kNccl,
            "the ranks called NCCL differently, or two share a GPU",
            kNcclDebug},
    Pattern{"ncclInvalidUsage", FaultKind::kNccl,
            "the ranks called NCCL differently, or two share a GPU",
            kNcclDebug},
    Pattern{"NCCL", FaultKind::kNccl, "NCCL failed", kNcclDebug},
    Pattern{"without ATen_cuda library", FaultKind::kCuda,
            "torch looked for a GPU before its CUDA library was loaded",
            "make the World first: World::from_environment() loads it; "
            "torch::manual_seed() and everything else that may look for a GPU "
            "comes after it"},
    Pattern{
        "CUDA error", FaultKind::kCuda,
        "a GPU operation failed; the place reported may be later than the "
        "place it happened",
        "run again with CUDA_LAUNCH_BLOCKING=1 to see the operation itself"},
    Pattern{"Connection refused", FaultKind::kPeerLost,
            "another rank ended while the ranks connected",
            "look for the first error of the other ranks"},
};

}  // namespace

Fault recognise(std::string_view text) {
  for (const Pattern& pattern : kPatterns) {
    if (text.find(pattern.text) == std::string_view::npos) continue;
    return {pattern.kind, std::string(pattern.cause),
            std::string(pattern.remedy)};
  }
  return {};
}

bool is_of_libraries(const std::exception& error) {
  if (dynamic_cast<const c10::Error*>(&error) != nullptr) return true;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  // Gloo's exceptions are plain ones; their text begins with a source file.
  const std::string_view text = error.what();
  return text.starts_with("[") && text.find("/gloo/") < text.find(']');
}

bool is_peer_loss(const std::exception& error) {
  if (dynamic_cast<const TimeoutError*>(&error) != nullptr) return false;
  if (dynamic_cast<const PeerError*>(&error) != nullptr) return true;
  return is_of_libraries(error) &&
         recognise(error.what()).kind == FaultKind::kPeerLost;
}

bool is_out_of_memory(const std::exception& error) {
  if (!is_of_libraries(error)) return false;
  const FaultKind kind = recognise(error.what()).kind;
  return kind == FaultKind::kOutOfMemory || kind == FaultKind::kOutOfHostMemory;
}

std::string error_text(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text =
      of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  return std::string(base::trim(text));
}

void throw_explained(const std::exception& error,
                     const std::string& what_was_done) {
  if (dynamic_cast<const Error*>(&error) != nullptr) throw;
  const std::string text = error_text(error);
  const Fault fault = recognise(text);
  const std::string message =
      fault.kind == FaultKind::kUnknown
          ? fmt::format("{}: {}", what_was_done, text)
          : fmt::format("{}: {}; {}; {}", what_was_done, text, fault.cause,
                        fault.remedy);
  switch (fault.kind) {
    case FaultKind::kTimeout: throw TimeoutError(message);
    case FaultKind::kPeerLost: throw PeerError(message);
    case FaultKind::kPortTaken:
    case FaultKind::kInterface: throw ConfigError(message);
    case FaultKind::kNccl:
    case FaultKind::kDuplicateGpu:
    case FaultKind::kOutOfMemory:
    case FaultKind::kOutOfHostMemory:
    case FaultKind::kCuda: throw DeviceError(message);
    case FaultKind::kUnknown: throw Error(message);
  }
  throw Error(message);
}

}  // namespace lockstep::comm
