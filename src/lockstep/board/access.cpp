#include "lockstep/board/access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::board {
namespace {

constexpr std::string_view kCookieName = "lockstep_board";

// Takes as long for any text of that length.
bool is_same(std::string_view text, std::string_view secret) {
  if (text.size() != secret.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    difference |= static_cast<unsigned char>(text[i]) ^
                  static_cast<unsigned char>(secret[i]);
  }
  return difference == 0;
}

std::string cookie_value(std::string_view cookies) {
  for (const std::string& part : base::split(cookies, ';')) {
    const std::string_view cookie = base::trim(part);
    const size_t equals = cookie.find('=');
    if (cookie.substr(0, equals) == kCookieName &&
        equals != std::string_view::npos) {
      return std::string(cookie.substr(equals + 1));
    }
  }
  return "";
}

// "localhost:8080" and "[::1]:8080" without their ports.
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_loopback_name(std::string_view name) {
  if (name == "localhost" || name == "[::1]") return true;
  const auto parts = base::split(name, '.');
  if (parts.size() != 4 || parts[0] != "127") return false;
  for (const std::string& part : parts) {
    const auto number = base::parse_integer(part);
    if (!number || *number < 0 || *number > 255) return false;
  }
  return true;
}

}  // namespace

Access check_access(const HttpRequest& request, const AccessRules& rules) {
  if (!rules.token) {
    return is_loopback_name(host_name(request.host)) ? Access::kGranted
                                                     : Access::kForeignHost;
  }
  if (const auto token = request.value("token")) {
    return is_same(*token, *rules.token) ? Access::kGrantedByLink
                                         : Access::kNoToken;
  }
  const std::string_view bearer = request.authorization;
  if (bearer.starts_with("Bearer ") &&
      is_same(bearer.substr(7), *rules.token)) {
    return Access::kGranted;
  }
  return is_same(cookie_value(request.cookie), *rules.token) ? Access::kGranted
                                                             : Access::kNoToken;
}

std::string token_cookie(const std::string& token) {
  return fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", kCookieName,
                     token);
}

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    throw IoError("cannot draw a random token: " + base::errno_text());
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace lockstep::board
