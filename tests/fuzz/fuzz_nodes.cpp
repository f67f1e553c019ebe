// The launchers' channel: bytes of strangers, and of members whose frames have
// right tags. The first byte says which; the rest arrives in pieces, each a
// byte for the length and the bytes.
#include "fuzz/target.h"
#include "lockstep/nodes/handshake.h"
#include "lockstep/nodes/rounds.h"

namespace {

using namespace lockstep;

const nodes::JobIdentity kJob = nodes::identify_job("secret", "job");

void hear_stranger(std::string_view rest) {
  nodes::ServerHandshake server(kJob);
  nodes::ClientHandshake client(kJob);
  std::string reply;
  while (!rest.empty()) {
    const size_t length = static_cast<uint8_t>(rest[0]);
    const std::string_view piece = rest.substr(1, length);
    try {
      server.receive(piece, reply);
      client.receive(piece, reply);
    } catch (const Error&) {
      return;
    }
    // Nobody guesses a proof.
    fuzz::require(!server.keys() && !client.keys());
    rest.remove_prefix(std::min(rest.size(), 1 + length));
  }
}

// Frames without a right tag end at the reader; with one, the message counts.
void hear_members(std::string_view rest) {
  nodes::FrameReader reader("key", 4096);
  reader.append(rest);
  try {
    fuzz::require(!reader.next());
  } catch (const FormatError&) {
    // Wrong tag or length.
  }
  nodes::Rounds rounds({.num_nodes = 2, .join_seconds = 5}, {});
  int64_t now = 0;
  while (rest.size() >= 3) {
    const size_t length = static_cast<uint8_t>(rest[0]) * size_t{8};
    const auto member = static_cast<nodes::MemberId>(rest[1] & 3);
    const auto type = static_cast<uint8_t>(rest[2]);
    const std::string body(rest.substr(3, length));
    now += 500'000'000;
    try {
      rounds.receive(member, nodes::decode({.type = type, .body = body}),
                     {.ns = now});
    } catch (const FormatError&) {
      rounds.leave(member, "wrong", {.ns = now});
    }
    rounds.tick({.ns = now});
    for (const auto& outgoing : rounds.take_outgoing()) {
      fuzz::require(nodes::decode(nodes::encode(outgoing.message)).index() ==
                    outgoing.message.index());
    }
    rest.remove_prefix(std::min(rest.size(), 3 + length));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest = fuzz::as_text(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    hear_stranger(rest);
  } else {
    hear_members(rest);
  }
  return 0;
}
