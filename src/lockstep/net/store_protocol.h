// The wire protocol of libtorch 2.11's TCPStore.
//
// A client begins with VALIDATE and a magic number and sends requests after it:
// one byte for the query, then its fields. Numbers are in the byte order of the
// machine; keys and values are a uint64 length and the bytes. SET, APPEND,
// MULTI_SET and QUEUE_PUSH have no reply.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/net/store_limits.h"

namespace lockstep::net {

enum class StoreQuery : uint8_t {
  kValidate,
  kSet,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kGetNumKeys,
  kDeleteKey,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,
  kQueuePush,
  kQueuePop,
  kQueueLength,
  kListKeys,
};
constexpr size_t kNumStoreQueries = 18;

constexpr uint32_t kStoreMagic = 0x3C85F7CE;

enum class CheckReply : uint8_t { kReady, kNotReady };
enum class WaitReply : uint8_t { kStopWaiting, kWaitCanceled };

// The views end with the next call of the reader.
struct StoreRequest {
  StoreQuery query = StoreQuery::kValidate;
  std::vector<std::string_view> keys = {};
  std::vector<std::string_view> values = {};
  int64_t number = 0;  // the magic number, the nonce of PING, what ADD adds
};

// Cuts the bytes of one client into requests, however they arrive. The time it
// takes is linear in the number of bytes.
class StoreRequestReader {
 public:
  explicit StoreRequestReader(const StoreLimits& limits) : limits_(&limits) {}

  void feed(std::string_view bytes);

  // No value: more bytes are needed. Throws FormatError on bytes that are not a
  // request or ask for more than the limits; the reader is of no use then.
  std::optional<StoreRequest> next();

  size_t num_buffered_bytes() const { return buffer_.size(); }

 private:
  struct Range {
    size_t begin;
    size_t size;
  };

  bool begin_request();
  bool read_field(char kind);
  bool read_bytes(size_t limit, const char* what, std::vector<Range>& ranges);
  bool read_number(size_t size);
  StoreRequest finish();
  void discard_finished();

  const StoreLimits* limits_;
  std::string buffer_;
  // Where the current request begins, and how far it is read.
  size_t begin_ = 0;
  size_t end_ = 0;
  std::optional<StoreQuery> query_;
  std::optional<uint64_t> num_left_;  // items of a list; unset: not read yet
  size_t field_ = 0;
  std::vector<Range> keys_;
  std::vector<Range> values_;
  int64_t number_ = 0;
};

// Writing, for both sides.
void append_number(std::string& bytes, uint64_t value, size_t size);
void append_bytes(std::string& bytes, std::string_view value);
std::string encode_request(const StoreRequest& request);

}  // namespace lockstep::net
