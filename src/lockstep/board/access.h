// Who may read the board.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/board/http_request.h"

namespace lockstep::board {

struct AccessRules {
  // Set: every request must carry it. Unset: the board listens at a loopback
  // address only.
  std::optional<std::string> token = {};
};

enum class Access {
  kGranted,
  kGrantedByLink,  // The token was in the address: keep it as a cookie.
  kNoToken,
  kForeignHost,  // A page of another site asks under its own name.
};

// Without a token the name in the Host header must be one of this machine's
// loopback: a site whose name was made to lead here is refused (DNS rebinding).
Access check_access(const HttpRequest& request, const AccessRules& rules);

// The cookie that carries the token.
std::string token_cookie(const std::string& token);

// 32 random hexadecimal digits. Throws IoError.
std::string random_token();

}  // namespace lockstep::board
