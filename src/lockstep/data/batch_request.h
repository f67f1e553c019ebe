// What a stream of batches is asked for. Private to data/.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lockstep/batch.h"

namespace lockstep::data {

// The fields of the Batch that is made of it; `indices` has at least one.
struct BatchRequest {
  std::vector<int64_t> indices = {};
  int64_t epoch = 0;  // Decides the samples' random draws.
  DataPosition next = {};
  bool is_filler = false;
  Step step = {};
  int64_t micro_batch = 0;
};

// Gives the requests of an epoch or a training in order, no value at its end.
// Called from any thread, by one at a time.
using RequestSequence = std::function<std::optional<BatchRequest>()>;

}  // namespace lockstep::data
