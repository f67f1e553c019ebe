// What every moment of the recorded steps was spent on.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lockstep/profile/kinds.h"

namespace lockstep::profile {

struct Event {
  std::string name;
  int64_t begin_ns = 0;  // Unix time.
  int64_t end_ns = 0;
  uint64_t thread = 0;     // On the host, or the stream of a GPU.
  bool is_device = false;  // A kernel, copy or fill of a GPU.
};

// A recording of one rank.
struct Recording {
  std::vector<Event> events = {};
  std::vector<int64_t> collectives = {};  // When each was started, sorted.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t main_thread = 0;  // That of the training loop.
  int64_t num_steps = 0;
};

struct TimeByKind {
  std::array<int64_t, kNumKinds> ns = {};
  // Time of names that are not known, for the reader who wants to know them.
  std::map<std::string, int64_t> unknown = {};

  int64_t of(Kind kind) const { return ns.at(static_cast<size_t>(kind)); }
  int64_t total() const;
};

// Sums up to the whole of the recording. With a GPU: what it did, products
// first where several kernels run at once, an exchange only where nothing else
// runs; while it is idle the host's waiting for data, else "host". Without: the
// innermost operation of the main thread; a pause behind the start of a
// collective is exchange.
TimeByKind time_by_kind(const Recording& recording);

}  // namespace lockstep::profile
