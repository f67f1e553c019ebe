#include "lockstep/board/board_command.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/net/address.h"

namespace lockstep::board {
namespace {

constexpr size_t kShortestToken = 16;
// Descriptors beside those of connections.
constexpr rlim_t kOwnDescriptors = 64;
constexpr rlim_t kMostDescriptors = 4096;

net::SocketAddress address_of(const BoardOptions& options) {
  const net::Resolution found = net::resolve(options.host, options.port);
  if (found.addresses.empty()) {
    throw ConfigError(fmt::format("--host {}: {}; 127.0.0.1 is this machine",
                                  options.host, found.error));
  }
  return found.addresses[0];
}

base::FileDescriptor listen_for(const BoardOptions& options,
                                const net::SocketAddress& address) {
  base::FileDescriptor listener = net::listen_at(address, net::PortUse::kReuse);
  if (listener) return listener;
  const int reason = errno;
  const std::string text = base::errno_text();
  if (reason == EADDRINUSE) {
    throw ConfigError(fmt::format(
        "port {} is in use, perhaps by another board; lockstep board --port 0 "
        "takes a free one",
        options.port));
  }
  throw ConfigError(
      fmt::format("cannot listen at {} port {}: {}; choose "
                  "another --host or --port",
                  options.host, options.port, text));
}

std::optional<std::string> token_of(const BoardOptions& options,
                                    bool is_loopback) {
  if (options.token_file) {
    const std::string text = base::read_file(*options.token_file);
    std::string token(base::trim(text.substr(0, text.find('\n'))));
    const bool is_plain = std::all_of(token.begin(), token.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ||
             c == '_';
    });
    if (token.size() < kShortestToken || !is_plain) {
      throw ConfigError(fmt::format(
          "--token-file {}: its first line must be {} or more letters, digits, "
          "'-' or '_'; openssl rand -hex 16 makes one",
          options.token_file->string(), kShortestToken));
    }
    return token;
  }
  if (options.needs_token || !is_loopback) return random_token();
  return std::nullopt;
}

// So that many idle connections fit; returns how many.
size_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 512;
  limit.rlim_cur =
      std::max(limit.rlim_cur, std::min(limit.rlim_max, kMostDescriptors));
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t usable =
      std::max(limit.rlim_cur, 2 * kOwnDescriptors) - kOwnDescriptors;
  return std::min<size_t>(usable, HttpServerConfig{}.most_connections);
}

std::string shown_host(const BoardOptions& options, bool is_loopback) {
  if (is_loopback) return "localhost";
  if (options.host == "0.0.0.0" || options.host == "::") {
    std::string name(256, '\0');
    gethostname(name.data(), name.size() - 1);
    return name.c_str();
  }
  return options.host.find(':') == std::string::npos ? options.host
                                                     : "[" + options.host + "]";
}

std::filesystem::path shown_folder(const BoardOptions& options) {
  if (!options.folder.empty()) return options.folder;
  return base::is_folder("runs") ? "runs" : ".";
}

}  // namespace

Board::Board(const BoardOptions& options)
    : folder_(shown_folder(options).string()) {
  const auto tree = std::make_shared<const runs::FolderTree>(folder_);
  const net::SocketAddress wanted = address_of(options);
  const bool is_loopback = wanted.is_loopback();
  const auto token = token_of(options, is_loopback);
  base::FileDescriptor listener = listen_for(options, wanted);
  port_ = net::local_address_of(listener.get()).port();
  address_ = fmt::format("http://{}:{}/{}", shown_host(options, is_loopback),
                         port_, token ? "?token=" + *token : "");
  site_ = std::make_unique<BoardSite>(BoardSiteConfig{
      .tree = tree,
      .title = std::filesystem::absolute(folder_).lexically_normal().string(),
      .access = {.token = token}});
  server_ = std::make_unique<HttpServer>(
      std::move(listener),
      HttpServerConfig{.most_connections = raise_descriptor_limit()},
      [site = site_.get()](const HttpRequest& request, int socket) {
        return site->answer(request, socket);
      });
}

Board::~Board() = default;

std::string Board::greeting() const {
  return fmt::format(
      "runs in {}: {}\nfrom another machine: ssh -L {}:localhost:{} HOST, then "
      "open the same address\nCtrl-C ends the board; runs are not touched\n",
      folder_, address_, port_, port_);
}

void Board::run(int stop_fd) { server_->run(stop_fd); }

}  // namespace lockstep::board
