// The first bytes of a connection between launchers: both ends prove that they
// know the job's key, before either believes or stores anything.
//
//   client  magic, version, digest of the job id, random number
//   server  magic, version, answer, random number, proof over both numbers
//   client  proof over both numbers
//
// All of it has a fixed size. Keys of the frames that follow are derived from
// both numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/nodes/frames.h"

namespace lockstep::nodes {

constexpr uint16_t kProtocolVersion = 2;

// What the server answers to the first bytes.
enum class Answer : uint8_t { kWelcome, kOtherVersion, kOtherJob };

struct JobIdentity {
  std::string key;     // job_key()
  std::string digest;  // job_digest()
};
JobIdentity identify_job(std::string_view secret, std::string_view job_id);

// Keys of a connection that has passed.
struct SessionKeys {
  std::string to_server;
  std::string to_client;
};

// Not thread-safe, like its counterpart. Both throw FormatError for what is
// not this protocol.
class ServerHandshake {
 public:
  explicit ServerHandshake(const JobIdentity& job);

  // Takes bytes of the client; what it gives back is for the client. Bytes
  // behind the handshake stay in `rest()`. Throws FormatError that says what is
  // wrong; `reply` may hold an answer for the client even then.
  void receive(std::string_view bytes, std::string& reply);
  const std::optional<SessionKeys>& keys() const { return keys_; }
  const std::string& rest() const { return buffer_; }

 private:
  void read_hello(std::string& reply);

  const JobIdentity* job_;
  std::string buffer_;
  std::string numbers_;  // of client and server; empty before the hello
  std::optional<SessionKeys> keys_;
};

class ClientHandshake {
 public:
  explicit ClientHandshake(const JobIdentity& job);

  // The first bytes.
  std::string hello() const;
  // Throws ConfigError when the server refuses, or does not know the key;
  // `reply` is for the server even then.
  void receive(std::string_view bytes, std::string& reply);
  const std::optional<SessionKeys>& keys() const { return keys_; }
  const std::string& rest() const { return buffer_; }

 private:
  const JobIdentity* job_;
  std::string number_;
  std::string buffer_;
  std::optional<SessionKeys> keys_;
};

}  // namespace lockstep::nodes
