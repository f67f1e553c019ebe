#include "lockstep/board/http_request.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "lockstep/base/strings.h"

namespace lockstep::board {
namespace {

constexpr size_t kMostHeaders = 100;

struct Refusal {
  int status = 400;
};

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char letter = static_cast<char>(c | 0x20);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

std::string decoded_or_refused(std::string_view text) {
  auto decoded = percent_decoded(text);
  if (!decoded) throw Refusal{};
  return *std::move(decoded);
}

void read_target(std::string_view target, HttpRequest& request) {
  if (!target.starts_with('/')) throw Refusal{};
  target = target.substr(0, target.find('#'));
  const size_t mark = target.find('?');
  request.path = decoded_or_refused(target.substr(0, mark));
  if (mark == std::string_view::npos) return;
  for (const std::string& part : base::split(target.substr(mark + 1), '&')) {
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    std::string value =
        equals == std::string::npos ? "" : part.substr(equals + 1);
    std::replace(value.begin(), value.end(), '+', ' ');
    request.query.emplace_back(decoded_or_refused(part.substr(0, equals)),
                               decoded_or_refused(value));
  }
}

// "GET /path HTTP/1.1"
void read_request_line(std::string_view line, HttpRequest& request) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) throw Refusal{};
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method)) throw Refusal{};
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    throw Refusal{version.starts_with("HTTP/") ? 505 : 400};
  }
  if (method != "GET" && method != "HEAD") throw Refusal{405};
  request.is_head = method == "HEAD";
  request.keep_alive = version == "HTTP/1.1";
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!is_field_value(target) || target.find(' ') != std::string_view::npos) {
    throw Refusal{};
  }
  read_target(target, request);
}

void read_header(std::string_view line, HttpRequest& request) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    throw Refusal{};
  }
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = base::trim(line.substr(colon + 1));
  if (!is_field_value(value)) throw Refusal{};
  if (name == "host") {
    if (!request.host.empty() || value.empty()) throw Refusal{};
    request.host = value;
  } else if (name == "cookie") {
    request.cookie = value;
  } else if (name == "authorization") {
    request.authorization = value;
  } else if (name == "connection") {
    const std::string options = lower(value);
    if (options.find("close") != std::string::npos) request.keep_alive = false;
  } else if (name == "transfer-encoding" ||
             (name == "content-length" && value != "0")) {
    throw Refusal{413};
  }
}

HttpRequest read_head(std::string_view head) {
  HttpRequest request;
  size_t num_lines = 0;
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    if (num_lines == 0) {
      read_request_line(line, request);
    } else {
      read_header(line, request);
    }
    if (++num_lines > kMostHeaders) throw Refusal{431};
    head.remove_prefix(end + 2);
  }
  if (request.host.empty()) throw Refusal{};
  return request;
}

// What no browser begins with: bytes of another protocol are refused before
// they fill a buffer.
bool may_begin_request(std::string_view bytes) {
  const std::string_view word =
      bytes.substr(0, std::min(bytes.find(' '), bytes.size()));
  return word.size() <= 16 && (word.empty() || is_token(word));
}

}  // namespace

std::optional<std::string> HttpRequest::value(std::string_view name) const {
  for (const auto& [known, text] : query) {
    if (known == name) return text;
  }
  return std::nullopt;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

ParsedRequest parse_request(std::string_view bytes) {
  const size_t end = bytes.substr(0, kMostRequestBytes).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() >= kMostRequestBytes) {
      return {.kind = ParsedRequest::Kind::kRefused, .status = 431};
    }
    if (!may_begin_request(bytes)) {
      return {.kind = ParsedRequest::Kind::kRefused, .status = 400};
    }
    return {};
  }
  try {
    return {.kind = ParsedRequest::Kind::kComplete,
            .request = read_head(bytes.substr(0, end + 2)),
            .size = end + 4};
  } catch (const Refusal& refusal) {
    return {.kind = ParsedRequest::Kind::kRefused, .status = refusal.status};
  }
}

}  // namespace lockstep::board
