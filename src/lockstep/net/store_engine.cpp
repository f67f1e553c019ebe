#include "lockstep/net/store_engine.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/error.h"

namespace lockstep::net {
namespace {

template <typename Reply>
std::string one_byte(Reply reply) {
  return std::string(1, static_cast<char>(reply));
}

std::string as_number(uint64_t value) {
  std::string bytes;
  append_number(bytes, value, sizeof(value));
  return bytes;
}

std::string as_bytes(std::string_view value) {
  std::string bytes;
  append_bytes(bytes, value);
  return bytes;
}

// In constant time, so that timing does not reveal how much of a guess was
// right.
bool is_same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

}  // namespace

StoreEngine::StoreEngine(StoreEngineConfig config)
    : config_(std::move(config)),
      data_(config_.limits, config_.secret.empty()
                                ? std::string()
                                : std::string(kReservedKeys)) {}

void StoreEngine::connect(StoreClientId client) {
  clients_.emplace(client, config_.limits);
}

void StoreEngine::disconnect(StoreClientId client) {
  data_.cancel_wait(client);
  clients_.erase(client);
}

bool StoreEngine::is_validated(StoreClientId client) const {
  return clients_.at(client).is_validated;
}

size_t StoreEngine::num_buffered_bytes(StoreClientId client) const {
  return clients_.at(client).reader.num_buffered_bytes();
}

void StoreEngine::receive(StoreClientId client, std::string_view bytes,
                          const Send& send) {
  StoreRequestReader& reader = clients_.at(client).reader;
  reader.feed(bytes);
  while (const auto request = reader.next()) answer(client, *request, send);
}

void StoreEngine::answer(StoreClientId id, const StoreRequest& request,
                         const Send& send) {
  Client& client = clients_.at(id);
  if (!client.is_validated) {
    validate(request, client);
    return;
  }
  if (request.query == StoreQuery::kCompareSet &&
      request.keys[0] == kProofKey) {
    prove(id, request, send);
    return;
  }
  check_keys(request, client);
  switch (request.query) {
    case StoreQuery::kWait:
      if (data_.wait(id, request.keys)) {
        send(id, one_byte(WaitReply::kStopWaiting));
      }
      return;
    case StoreQuery::kCancelWait:
      data_.cancel_wait(id);
      send(id, one_byte(WaitReply::kWaitCanceled));
      return;
    case StoreQuery::kSet:
    case StoreQuery::kCompareSet:
    case StoreQuery::kAdd:
    case StoreQuery::kAppend:
    case StoreQuery::kMultiSet:
    case StoreQuery::kQueuePush: answer_change(id, request, send); return;
    default: send(id, reply_to(request, client));
  }
}

void StoreEngine::validate(const StoreRequest& request, Client& client) const {
  if (request.query != StoreQuery::kValidate ||
      static_cast<uint32_t>(request.number) != kStoreMagic) {
    throw FormatError("the first request is not VALIDATE with its number");
  }
  client.is_validated = true;
}

void StoreEngine::prove(StoreClientId id, const StoreRequest& request,
                        const Send& send) {
  if (config_.secret.empty() ||
      !is_same_secret(request.values[0], config_.secret)) {
    throw FormatError("a client that does not know the job's secret");
  }
  clients_.at(id).has_proof = true;
  send(id, as_bytes(kProofAccepted));
}

void StoreEngine::check_keys(const StoreRequest& request,
                             const Client& client) const {
  if (client.has_proof) return;
  for (const std::string_view key : request.keys) {
    if (!data_.is_reserved(key)) continue;
    throw FormatError(fmt::format("keys under {} are for the job's own ranks",
                                  kReservedKeys));
  }
}

// A change of keys may wake other clients. They are answered first: the
// client's own reply may be one too many.
void StoreEngine::answer_change(StoreClientId id, const StoreRequest& request,
                                const Send& send) {
  const auto& keys = request.keys;
  const auto& values = request.values;
  const auto wake = [&](const StoreData::Woken& clients) {
    for (const StoreClientId client : clients) {
      send(client, one_byte(WaitReply::kStopWaiting));
    }
  };
  switch (request.query) {
    case StoreQuery::kSet: wake(data_.set(keys[0], values[0])); return;
    case StoreQuery::kAppend: wake(data_.append(keys[0], values[0])); return;
    case StoreQuery::kQueuePush: wake(data_.push(keys[0], values[0])); return;
    case StoreQuery::kCompareSet: {
      std::string result;
      wake(data_.compare_set(keys[0], values[0], values[1], result));
      send(id, as_bytes(result));
      return;
    }
    case StoreQuery::kAdd: {
      int64_t result = 0;
      wake(data_.add(keys[0], request.number, result));
      send(id, as_number(static_cast<uint64_t>(result)));
      return;
    }
    default:  // MULTI_SET
      for (size_t i = 0; i < keys.size(); ++i) {
        wake(data_.set(keys[i], values[i]));
      }
  }
}

std::string StoreEngine::reply_to(const StoreRequest& request,
                                  const Client& client) {
  const auto view = client.has_proof || config_.secret.empty()
                        ? StoreData::View::kAll
                        : StoreData::View::kUnreserved;
  switch (request.query) {
    case StoreQuery::kGet: return as_bytes(data_.get(request.keys[0]));
    case StoreQuery::kCheck:
      for (const std::string_view key : request.keys) {
        if (!data_.has(key)) return one_byte(CheckReply::kNotReady);
      }
      return one_byte(CheckReply::kReady);
    case StoreQuery::kGetNumKeys: return as_number(data_.count_keys(view));
    case StoreQuery::kDeleteKey:
      return as_number(data_.erase(request.keys[0]) ? 1 : 0);
    case StoreQuery::kMultiGet: return get_all(request);
    case StoreQuery::kPing: {
      std::string bytes;
      append_number(bytes, static_cast<uint64_t>(request.number),
                    sizeof(uint32_t));
      return bytes;
    }
    case StoreQuery::kQueuePop: {
      std::string bytes = as_number(data_.queue_length(request.keys[0]));
      std::string value;
      if (data_.pop(request.keys[0], value)) append_bytes(bytes, value);
      return bytes;
    }
    case StoreQuery::kQueueLength:
      return as_number(data_.queue_length(request.keys[0]));
    case StoreQuery::kListKeys: return list_keys(view);
    default: throw FormatError("VALIDATE twice");
  }
}

std::string StoreEngine::get_all(const StoreRequest& request) const {
  std::string bytes;
  for (const std::string_view key : request.keys) {
    append_bytes(bytes, data_.get(key));
    if (bytes.size() > config_.limits.max_reply_bytes) {
      throw FormatError(fmt::format("a reply of more than {} bytes",
                                    config_.limits.max_reply_bytes));
    }
  }
  return bytes;
}

std::string StoreEngine::list_keys(StoreData::View view) const {
  const auto keys = data_.list_keys(view);
  std::string bytes = as_number(keys.size());
  for (const std::string_view key : keys) {
    append_bytes(bytes, key);
    if (bytes.size() > config_.limits.max_reply_bytes) {
      throw FormatError(fmt::format("a reply of more than {} bytes",
                                    config_.limits.max_reply_bytes));
    }
  }
  return bytes;
}

}  // namespace lockstep::net
