#include "lockstep/nodes/messages.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/base/hex.h"
#include "lockstep/error.h"

namespace lockstep::nodes {
namespace {

using nlohmann::json;

constexpr int kMostNodes = 65536;
constexpr int kLastPort = 65535;
constexpr int kLastSignal = 64;

std::string bytes_from(const json& value) {
  if (auto bytes = base::from_hex(value.get<std::string>())) {
    return *std::move(bytes);
  }
  throw FormatError("a message with a wrong number");
}

int bounded(const json& value, int low, int high) {
  if (value.is_number_integer()) {
    const auto number = value.get<int64_t>();
    if (number >= low && number <= high) return static_cast<int>(number);
  }
  throw FormatError("a message with a number out of range");
}

double finite(const json& value) {
  const auto number = value.get<double>();
  if (!std::isfinite(number)) {
    throw FormatError("a message with a number out of range");
  }
  return number;
}

json entry_to_json(const NodeEntry& entry) {
  return {{"host", entry.host_name}, {"processes", entry.num_processes}};
}

NodeEntry entry_from_json(const json& value) {
  return {.host_name = value.at("host").get<std::string>(),
          .num_processes = bounded(value.at("processes"), 1, kMostNodes)};
}

json write_body(const Join& join) {
  return {{"nodes", join.num_nodes},
          {"min_nodes", join.min_nodes},
          {"processes", join.num_processes},
          {"node", join.node ? json(*join.node) : json(nullptr)},
          {"is_host", join.is_host},
          {"host", join.host_name},
          {"time", join.unix_time},
          {"master_addr", join.master_addr},
          {"master_port", join.master_port},
          {"store_secret", base::to_hex(join.store_secret)},
          {"job", join.job},
          {"keeps_state", join.keeps_state},
          {"holds_state", join.holds_state},
          {"former", join.former ? json{{"attempt", join.former->attempt},
                                        {"node", join.former->node}}
                                 : json(nullptr)}};
}

void read_body(const json& body, Join& join) {
  join.num_nodes = bounded(body.at("nodes"), 1, kMostNodes);
  join.min_nodes = bounded(body.at("min_nodes"), 0, join.num_nodes);
  join.num_processes = bounded(body.at("processes"), 1, kMostNodes);
  if (const json& node = body.at("node"); !node.is_null()) {
    join.node = bounded(node, 0, kMostNodes);
  }
  join.is_host = body.at("is_host").get<bool>();
  join.host_name = body.at("host").get<std::string>();
  join.unix_time = finite(body.at("time"));
  join.master_addr = body.at("master_addr").get<std::string>();
  join.master_port = bounded(body.at("master_port"), 0, kLastPort);
  join.store_secret = bytes_from(body.at("store_secret"));
  join.job = body.at("job").get<std::string>();
  join.keeps_state = body.at("keeps_state").get<bool>();
  join.holds_state = body.at("holds_state").get<bool>();
  if (const json& former = body.at("former"); !former.is_null()) {
    join.former = {.attempt = bounded(former.at("attempt"), 0, INT32_MAX),
                   .node = bounded(former.at("node"), 0, kMostNodes)};
  }
}

json write_body(const Alive& alive) { return {{"is_stuck", alive.is_stuck}}; }

void read_body(const json& body, Alive& alive) {
  alive.is_stuck = body.at("is_stuck").get<bool>();
}

json write_body(const Ending& ending) {
  return {{"signal", ending.signal},
          {"is_leaving", ending.is_leaving},
          {"suspends", ending.suspends}};
}

void read_body(const json& body, Ending& ending) {
  ending.signal = bounded(body.at("signal"), 0, kLastSignal);
  ending.is_leaving = body.at("is_leaving").get<bool>();
  ending.suspends = body.at("suspends").get<bool>();
}

json write_body(const Result& result) { return {{"text", result.text}}; }

void read_body(const json& body, Result& result) {
  result.text = body.at("text").get<std::string>();
}

json write_body(const Verdict& verdict) {
  return {{"is_restart", verdict.is_restart},
          {"is_counted", verdict.is_counted},
          {"delay", verdict.delay_seconds},
          {"exit_code", verdict.exit_code},
          {"stop_signal", verdict.stop_signal},
          {"text", verdict.text},
          {"cause", verdict.cause},
          {"keeps_state", verdict.keeps_state},
          {"departed", verdict.departed}};
}

void read_body(const json& body, Verdict& verdict) {
  constexpr int kLastExitCode = 255;
  verdict.is_restart = body.at("is_restart").get<bool>();
  verdict.is_counted = body.at("is_counted").get<bool>();
  verdict.delay_seconds = finite(body.at("delay"));
  verdict.exit_code = bounded(body.at("exit_code"), 0, kLastExitCode);
  verdict.stop_signal = bounded(body.at("stop_signal"), 0, kLastSignal);
  verdict.text = body.at("text").get<std::string>();
  verdict.cause = body.at("cause").get<std::string>();
  verdict.keeps_state = body.at("keeps_state").get<bool>();
  for (const json& node : body.at("departed")) {
    verdict.departed.push_back(bounded(node, 0, kMostNodes));
  }
}

json write_body(const World& world) {
  return {{"attempt", world.attempt},
          {"restarts", world.num_restarts},
          {"node", world.node},
          {"nodes", world.num_nodes},
          {"first_rank", world.first_rank},
          {"ranks", world.num_ranks},
          {"master_addr", world.master_addr},
          {"master_port", world.master_port},
          {"store_secret", base::to_hex(world.store_secret)},
          {"job", world.job},
          {"generation", world.generation},
          {"addresses", world.addresses}};
}

void read_body(const json& body, World& world) {
  world.attempt = bounded(body.at("attempt"), 0, INT32_MAX);
  world.num_restarts = bounded(body.at("restarts"), 0, INT32_MAX);
  world.num_nodes = bounded(body.at("nodes"), 1, kMostNodes);
  world.node = bounded(body.at("node"), 0, world.num_nodes - 1);
  world.num_ranks = bounded(body.at("ranks"), 1, INT32_MAX);
  world.first_rank = bounded(body.at("first_rank"), 0, world.num_ranks - 1);
  world.master_addr = body.at("master_addr").get<std::string>();
  world.master_port = bounded(body.at("master_port"), 0, kLastPort);
  world.store_secret = bytes_from(body.at("store_secret"));
  world.job = body.at("job").get<std::string>();
  world.generation = bounded(body.at("generation"), 0, INT32_MAX);
  for (const json& address : body.at("addresses")) {
    world.addresses.push_back(address.get<std::string>());
  }
}

json write_body(const End& end) {
  return {{"kind", static_cast<int>(end.kind)}, {"signal", end.signal}};
}

void read_body(const json& body, End& end) {
  end.kind = static_cast<End::Kind>(
      bounded(body.at("kind"), 0, static_cast<int>(End::Kind::kCut)));
  end.signal = bounded(body.at("signal"), 0, kLastSignal);
}

json write_body(const Results& results) {
  json nodes = json::array();
  for (const NodeResult& node : results.nodes) {
    nodes.push_back({{"node", node.node},
                     {"entry", entry_to_json(node.entry)},
                     {"text", node.text},
                     {"loss", node.loss},
                     {"may_live", node.may_live},
                     {"is_leaving", node.is_leaving},
                     {"lost_at", node.lost_at},
                     {"clock_offset", node.clock_offset}});
  }
  json newcomers = json::array();
  for (const NodeEntry& entry : results.newcomers) {
    newcomers.push_back(entry_to_json(entry));
  }
  return {{"nodes", nodes}, {"newcomers", newcomers}};
}

void read_body(const json& body, Results& results) {
  for (const json& node : body.at("nodes")) {
    results.nodes.push_back({.node = bounded(node.at("node"), 0, kMostNodes),
                             .entry = entry_from_json(node.at("entry")),
                             .text = node.at("text").get<std::string>(),
                             .loss = node.at("loss").get<std::string>(),
                             .may_live = node.at("may_live").get<bool>(),
                             .is_leaving = node.at("is_leaving").get<bool>(),
                             .lost_at = finite(node.at("lost_at")),
                             .clock_offset = finite(node.at("clock_offset"))});
  }
  for (const json& entry : body.at("newcomers")) {
    results.newcomers.push_back(entry_from_json(entry));
  }
}

json write_body(const Refusal& refusal) { return {{"reason", refusal.reason}}; }

void read_body(const json& body, Refusal& refusal) {
  refusal.reason = body.at("reason").get<std::string>();
}

json write_body(const Queued& queued) { return {{"reason", queued.reason}}; }

void read_body(const json& body, Queued& queued) {
  queued.reason = body.at("reason").get<std::string>();
}

json write_body(const Note& note) { return {{"text", note.text}}; }

void read_body(const json& body, Note& note) {
  note.text = body.at("text").get<std::string>();
}

json write_body(const Abandon&) { return json::object(); }

void read_body(const json&, Abandon&) {}

template <size_t Index>
Message read_message(const json& body) {
  std::variant_alternative_t<Index, Message> message;
  read_body(body, message);
  return message;
}

template <size_t... Indices>
Message read_by_type(uint8_t type, const json& body,
                     std::index_sequence<Indices...>) {
  constexpr std::array<Message (*)(const json&), sizeof...(Indices)> kReaders =
      {read_message<Indices>...};
  if (type >= kReaders.size()) throw FormatError("a message of unknown type");
  return kReaders[type](body);
}

}  // namespace

Frame encode(const Message& message) {
  const json body =
      std::visit([](const auto& value) { return write_body(value); }, message);
  return {.type = static_cast<uint8_t>(message.index()),
          .body = body.dump(-1, ' ', false, json::error_handler_t::replace)};
}

Message decode(const Frame& frame) {
  const json body = json::parse(frame.body, nullptr, false);
  if (body.is_discarded()) throw FormatError("a message that is not JSON");
  try {
    return read_by_type(
        frame.type, body,
        std::make_index_sequence<std::variant_size_v<Message>>());
  } catch (const json::exception&) {
    throw FormatError("a message without what belongs into it");
  }
}

}  // namespace lockstep::nodes
