#include "lockstep/net/store_protocol.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "lockstep/error.h"

namespace lockstep::net {
namespace {

// The fields of a query: k a key, v a value, 4 and 8 a number of 4 or 8 bytes.
// Fields of a list are repeated as often as the number before them.
struct Grammar {
  std::string_view fields;
  bool is_list = false;
};

constexpr std::array<Grammar, kNumStoreQueries> kGrammars = {{
    {"4"},         // VALIDATE
    {"kv"},        // SET
    {"kvv"},       // COMPARE_SET
    {"k"},         // GET
    {"k8"},        // ADD
    {"k", true},   // CHECK
    {"k", true},   // WAIT
    {""},          // GETNUMKEYS
    {"k"},         // DELETE_KEY
    {"kv"},        // APPEND
    {"k", true},   // MULTI_GET
    {"kv", true},  // MULTI_SET
    {""},          // CANCEL_WAIT
    {"4"},         // PING
    {"kv"},        // QUEUE_PUSH
    {"k"},         // QUEUE_POP
    {"k"},         // QUEUE_LEN
    {""},          // LIST_KEYS
}};

const Grammar& grammar_of(StoreQuery query) {
  return kGrammars[static_cast<size_t>(query)];
}

constexpr size_t kKeptCapacity = size_t{1} << 20;

}  // namespace

void StoreRequestReader::feed(std::string_view bytes) {
  discard_finished();
  buffer_.append(bytes);
}

void StoreRequestReader::discard_finished() {
  if (begin_ == 0) return;
  buffer_.erase(0, begin_);
  end_ -= begin_;
  begin_ = 0;
  // A large request does not hold its memory for ever.
  if (buffer_.empty() && buffer_.capacity() > kKeptCapacity) {
    buffer_.shrink_to_fit();
  }
}

std::optional<StoreRequest> StoreRequestReader::next() {
  if (!query_ && !begin_request()) return std::nullopt;
  const Grammar& grammar = grammar_of(*query_);
  if (!num_left_) {
    if (grammar.is_list) {
      if (!read_number(sizeof(uint64_t))) return std::nullopt;
      num_left_ = static_cast<uint64_t>(number_);
      if (*num_left_ > limits_->max_keys_per_request) {
        throw FormatError(fmt::format("a request with {} keys; the limit is {}",
                                      *num_left_,
                                      limits_->max_keys_per_request));
      }
    } else {
      num_left_ = 1;
    }
  }
  for (; *num_left_ > 0; --*num_left_, field_ = 0) {
    for (; field_ < grammar.fields.size(); ++field_) {
      if (!read_field(grammar.fields[field_])) return std::nullopt;
    }
  }
  return finish();
}

bool StoreRequestReader::begin_request() {
  if (end_ == buffer_.size()) {
    discard_finished();
    return false;
  }
  const auto code = static_cast<uint8_t>(buffer_[end_]);
  if (code >= kNumStoreQueries) {
    throw FormatError(fmt::format("unknown query {}", code));
  }
  ++end_;
  query_ = static_cast<StoreQuery>(code);
  num_left_.reset();
  field_ = 0;
  keys_ = {};
  values_ = {};
  number_ = 0;
  return true;
}

bool StoreRequestReader::read_field(char kind) {
  switch (kind) {
    case 'k': return read_bytes(limits_->max_key_bytes, "key", keys_);
    case 'v': return read_bytes(limits_->max_value_bytes, "value", values_);
    case '4': return read_number(sizeof(uint32_t));
    default: return read_number(sizeof(uint64_t));
  }
}

bool StoreRequestReader::read_number(size_t size) {
  if (buffer_.size() - end_ < size) return false;
  uint64_t value = 0;
  if (size == sizeof(uint32_t)) {
    uint32_t half = 0;
    std::memcpy(&half, buffer_.data() + end_, size);
    value = half;
  } else {
    std::memcpy(&value, buffer_.data() + end_, size);
  }
  number_ = static_cast<int64_t>(value);
  end_ += size;
  return true;
}

bool StoreRequestReader::read_bytes(size_t limit, const char* what,
                                    std::vector<Range>& ranges) {
  uint64_t size = 0;
  if (buffer_.size() - end_ < sizeof(size)) return false;
  std::memcpy(&size, buffer_.data() + end_, sizeof(size));
  if (size > limit) {
    throw FormatError(
        fmt::format("a {} of {} bytes; the limit is {}", what, size, limit));
  }
  const size_t begin = end_ + sizeof(size);
  if (begin + size - begin_ > limits_->max_request_bytes) {
    throw FormatError(fmt::format("a request of more than {} bytes",
                                  limits_->max_request_bytes));
  }
  if (buffer_.size() - begin < size) return false;
  ranges.push_back({begin - begin_, size});
  end_ = begin + size;
  return true;
}

StoreRequest StoreRequestReader::finish() {
  StoreRequest request{.query = *query_, .number = number_};
  const std::string_view all = std::string_view(buffer_).substr(begin_);
  for (const Range& range : keys_) {
    request.keys.push_back(all.substr(range.begin, range.size));
  }
  for (const Range& range : values_) {
    request.values.push_back(all.substr(range.begin, range.size));
  }
  query_.reset();
  begin_ = end_;
  return request;
}

void append_number(std::string& bytes, uint64_t value, size_t size) {
  if (size == sizeof(uint32_t)) {
    const auto half = static_cast<uint32_t>(value);
    bytes.append(reinterpret_cast<const char*>(&half), size);
    return;
  }
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_bytes(std::string& bytes, std::string_view value) {
  append_number(bytes, value.size(), sizeof(uint64_t));
  bytes.append(value);
}

std::string encode_request(const StoreRequest& request) {
  const Grammar& grammar = grammar_of(request.query);
  std::string bytes(1, static_cast<char>(request.query));
  size_t num_items = 1;
  if (grammar.is_list) {
    num_items = request.keys.size();
    append_number(bytes, num_items, sizeof(uint64_t));
  }
  size_t key = 0;
  size_t value = 0;
  for (size_t item = 0; item < num_items; ++item) {
    for (const char kind : grammar.fields) {
      if (kind == 'k') {
        append_bytes(bytes, request.keys[key++]);
      } else if (kind == 'v') {
        append_bytes(bytes, request.values[value++]);
      } else {
        append_number(bytes, static_cast<uint64_t>(request.number),
                      kind == '4' ? sizeof(uint32_t) : sizeof(uint64_t));
      }
    }
  }
  return bytes;
}

}  // namespace lockstep::net
