// Results of one attempt on several nodes: as texts between launchers, and as
// one result of the whole job.
#pragma once

#include <string>

#include "lockstep/launch/attempt.h"
#include "lockstep/nodes/messages.h"

namespace lockstep::launch {

// What the host has to know of a node's attempt. Beyond `max_bytes` only the
// root cause is told, and then not all of it.
std::string encode_result(const AttemptResult& result, size_t max_bytes);

// What a node of so many may tell: the host gets all results in one message.
size_t max_result_bytes(int num_nodes);
// Throws FormatError.
AttemptResult decode_result(const std::string& text);

std::string encode_failure(const Failure& failure);
// Throws FormatError.
Failure decode_failure(const std::string& text);

// Times are those of the host's clock; failures and ranks have their place. A
// node that is lost is a failure.
AttemptResult merge_results(const nodes::Results& results);

}  // namespace lockstep::launch
