// `lockstep board`: listens, and serves the page until it is stopped.
#pragma once

#include <memory>
#include <string>

#include "lockstep/board/board_options.h"
#include "lockstep/board/board_site.h"

namespace lockstep::board {

// A board that listens and can be served.
class Board {
 public:
  // Throws ConfigError: no such folder, the port is in use, the address is not
  // one of this machine, a token that is too short.
  explicit Board(const BoardOptions& options);
  ~Board();

  // With the token, where there is one.
  const std::string& address() const { return address_; }
  // What to print at the start: the address, and how to reach it from another
  // machine.
  std::string greeting() const;

  // Until `stop_fd` can be read.
  void run(int stop_fd);

 private:
  std::string address_;
  std::string folder_;
  int port_ = 0;
  std::unique_ptr<BoardSite> site_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace lockstep::board
