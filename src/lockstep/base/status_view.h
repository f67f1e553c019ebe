// The status page of a rank (base/status.h), read by a third program of the
// same user: neither launcher nor worker takes part, or notices.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "lockstep/base/status.h"
#include "lockstep/base/training_status.h"

namespace lockstep::base {

struct PageView {
  RankStatus rank = {};
  std::optional<TrainingStatus> training = {};  // Unless a trainer writes.
};

// The pages that a process, a launcher or a worker, has open; in the order of
// ranks. None when it ended, belongs to another user or has no pages. Reads
// bytes instead of mapping them: a page that its owner cuts short cannot
// disturb the reader.
std::vector<PageView> read_status_pages(int pid);

}  // namespace lockstep::base
