// Bytes of a client of the board: what is taken is a whole request.
#include "fuzz/target.h"
#include "lockstep/board/access.h"
#include "lockstep/board/http_request.h"

namespace {

using namespace lockstep;
using Kind = board::ParsedRequest::Kind;

void check_request(const board::HttpRequest& request) {
  fuzz::require(request.path.starts_with('/'));
  fuzz::require(request.path.find('\0') == std::string::npos);
  fuzz::require(!request.host.empty());
  board::check_access(request, {});
  board::check_access(request, {.token = "0123456789abcdef"});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest = fuzz::as_text(data, size);
  for (;;) {
    const board::ParsedRequest parsed = board::parse_request(rest);
    if (parsed.kind == Kind::kRefused) {
      fuzz::require(parsed.status >= 400 && parsed.status < 600);
      return 0;
    }
    if (parsed.kind == Kind::kIncomplete) {
      fuzz::require(rest.size() < board::kMostRequestBytes);
      return 0;
    }
    fuzz::require(parsed.size > 0 && parsed.size <= rest.size());
    check_request(parsed.request);
    rest.remove_prefix(parsed.size);
  }
}
