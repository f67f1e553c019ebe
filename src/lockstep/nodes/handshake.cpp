#include "lockstep/nodes/handshake.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "lockstep/nodes/proof.h"

namespace lockstep::nodes {
namespace {

constexpr std::string_view kMagic = "lockstep nodes\r\n";
constexpr size_t kVersionBytes = 2;
constexpr size_t kNumberBytes = 32;
constexpr size_t kHelloBytes =
    kMagic.size() + kVersionBytes + kDigestBytes + kNumberBytes;
constexpr size_t kAnswerBytes =
    kMagic.size() + kVersionBytes + 1 + kNumberBytes + kDigestBytes;

std::string opening(uint16_t version) {
  return std::string(kMagic) + static_cast<char>(version & 0xff) +
         static_cast<char>(version >> 8);
}

// Parses an opening whose magic was checked.
int version_in(std::string_view bytes) {
  return static_cast<unsigned char>(bytes[kMagic.size()]) |
         static_cast<unsigned char>(bytes[kMagic.size() + 1]) << 8;
}

// As early as it shows: strangers do not get to fill a buffer.
void check_magic(std::string_view bytes) {
  const size_t size = std::min(bytes.size(), kMagic.size());
  if (bytes.substr(0, size) != kMagic.substr(0, size)) {
    throw FormatError("bytes that are not of a launcher");
  }
}

std::string proof_of(const JobIdentity& job, std::string_view side,
                     const std::string& numbers) {
  return hmac_sha256(job.key, std::string(side) + numbers);
}

SessionKeys derive_keys(const JobIdentity& job, const std::string& numbers) {
  return {.to_server = proof_of(job, "to server", numbers),
          .to_client = proof_of(job, "to client", numbers)};
}

}  // namespace

JobIdentity identify_job(std::string_view secret, std::string_view job_id) {
  return {.key = job_key(secret, job_id), .digest = job_digest(job_id)};
}

ServerHandshake::ServerHandshake(const JobIdentity& job) : job_(&job) {}

void ServerHandshake::receive(std::string_view bytes, std::string& reply) {
  buffer_.append(bytes);
  if (numbers_.empty()) {
    check_magic(buffer_);
    if (buffer_.size() < kHelloBytes) return;
    read_hello(reply);
  }
  if (keys_ || buffer_.size() < kDigestBytes) return;
  if (!is_same_digest(proof_of(*job_, "client", numbers_),
                      std::string_view(buffer_).substr(0, kDigestBytes))) {
    throw FormatError("a launcher with another secret");
  }
  buffer_.erase(0, kDigestBytes);
  keys_ = derive_keys(*job_, numbers_);
}

void ServerHandshake::read_hello(std::string& reply) {
  const std::string_view hello = buffer_;
  const size_t digest_at = kMagic.size() + kVersionBytes;
  const bool is_same_version = version_in(hello) == kProtocolVersion;
  const bool is_same_job =
      hello.substr(digest_at, kDigestBytes) == job_->digest;
  const Answer answer = !is_same_version ? Answer::kOtherVersion
                        : is_same_job    ? Answer::kWelcome
                                         : Answer::kOtherJob;
  const std::string own = random_bytes(kNumberBytes);
  numbers_ =
      std::string(hello.substr(digest_at + kDigestBytes, kNumberBytes)) + own;
  buffer_.erase(0, kHelloBytes);
  reply += opening(kProtocolVersion) + static_cast<char>(answer) + own +
           (answer == Answer::kWelcome ? proof_of(*job_, "server", numbers_)
                                       : std::string(kDigestBytes, '\0'));
  if (answer == Answer::kOtherVersion) {
    throw FormatError("a launcher of another version of Lockstep");
  }
  if (answer == Answer::kOtherJob) {
    throw FormatError("a launcher of another job (its --rdzv-id differs)");
  }
}

ClientHandshake::ClientHandshake(const JobIdentity& job)
    : job_(&job), number_(random_bytes(kNumberBytes)) {}

std::string ClientHandshake::hello() const {
  return opening(kProtocolVersion) + job_->digest + number_;
}

void ClientHandshake::receive(std::string_view bytes, std::string& reply) {
  buffer_.append(bytes);
  if (keys_) return;
  check_magic(buffer_);
  if (buffer_.size() < kAnswerBytes) return;
  const std::string_view whole = buffer_;
  const auto answer = static_cast<Answer>(whole[kMagic.size() + kVersionBytes]);
  if (answer == Answer::kOtherVersion) {
    throw ConfigError(fmt::format(
        "the launcher there has version {} of the launchers' protocol, this "
        "one {}; install the same Lockstep on all nodes",
        version_in(whole), kProtocolVersion));
  }
  if (answer != Answer::kWelcome) {
    throw ConfigError(
        "another job is there (its --rdzv-id differs); give every node the "
        "same --rdzv-id, and each job its own port");
  }
  const size_t number_at = kMagic.size() + kVersionBytes + 1;
  const std::string numbers =
      number_ + std::string(whole.substr(number_at, kNumberBytes));
  if (!is_same_digest(proof_of(*job_, "server", numbers),
                      whole.substr(number_at + kNumberBytes, kDigestBytes))) {
    // Tells the other end, too, that the secrets differ.
    reply += std::string(kDigestBytes, '\0');
    throw ConfigError(
        "the launcher there has another secret; give every node the same "
        "--rdzv-secret-file");
  }
  buffer_.erase(0, kAnswerBytes);
  reply += proof_of(*job_, "client", numbers);
  keys_ = derive_keys(*job_, numbers);
}

}  // namespace lockstep::nodes
