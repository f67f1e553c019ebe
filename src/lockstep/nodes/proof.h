// What launchers prove to each other: HMAC-SHA256 of random numbers, keyed by
// the job's secret.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::nodes {

constexpr size_t kDigestBytes = 32;

// 32 bytes.
std::string hmac_sha256(std::string_view key, std::string_view text);

// In a time that does not depend on where they differ.
bool is_same_digest(std::string_view a, std::string_view b);

// For nonces. Throws IoError.
std::string random_bytes(size_t count);

// Key of a job: made from both its id and its secret.
std::string job_key(std::string_view secret, std::string_view job_id);

// Names a job to a stranger without its key.
std::string job_digest(std::string_view job_id);

}  // namespace lockstep::nodes
