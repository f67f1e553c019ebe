// What tests of the exchange ask of a world and its tensors.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <sstream>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "lockstep/base/files.h"
#include "lockstep/world.h"

namespace lockstep::testing {

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

inline BackendPtr cpu_backend(const World& world) {
  return world.group()->getBackend(c10::DeviceType::CPU);
}

// By the kernel's table of mappings.
inline bool is_shared_memory(const void* address) {
  std::istringstream maps(base::read_file("/proc/self/maps"));
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end);
    if (wanted >= begin && wanted < end) {
      return line.find("lockstep-exchange") != std::string::npos;
    }
  }
  return false;
}

}  // namespace lockstep::testing
