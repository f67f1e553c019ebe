#include "lockstep/board/board_options.h"

#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::board {
namespace {

constexpr const char* kBoardHelp =
    R"(usage: lockstep board [FOLDER] [--host ADDRESS] [--port N] [--token] [--token-file FILE]

Serves a web page over the runs below a folder: the list of runs, live curves of
several runs over each other, samples, what every rank does, log, settings and
checkpoints. It only reads, and needs neither torch nor a network.

  FOLDER             folder with runs; default: runs, or the current folder
  --host ADDRESS     address to listen at (default: 127.0.0.1, this machine only)
  --port N           port to listen at (default: 6070; 0: any that is free)
  --token            ask for a token, which is printed with the address; always
                     so unless the address is this machine's own loopback
  --token-file FILE  the token is the first line of this file
  -h, --help         print this text

From another machine: ssh -L 6070:localhost:6070 HOST, then open
http://localhost:6070.
)";

// "--port=1" and "--port 1".
class BoardWords {
 public:
  explicit BoardWords(std::span<const std::string> words) : words_(words) {}

  bool next() {
    if (at_ == words_.size()) return false;
    word_ = words_[at_++];
    value_.reset();
    const size_t equals = word_.find('=');
    if (word_.starts_with("--") && equals != std::string::npos) {
      value_ = word_.substr(equals + 1);
      word_.resize(equals);
    }
    return true;
  }

  const std::string& word() const { return word_; }

  std::string value() {
    if (value_) return *value_;
    if (at_ < words_.size()) return words_[at_++];
    throw ConfigError(word_ +
                      ": a value is missing; see lockstep board --help");
  }

 private:
  std::span<const std::string> words_;
  size_t at_ = 0;
  std::string word_ = {};
  std::optional<std::string> value_ = {};
};

int port_of(const std::string& text) {
  const auto port = base::parse_integer(text);
  if (port && *port >= 0 && *port <= 65535) return static_cast<int>(*port);
  throw ConfigError(
      fmt::format("--port {}: a number from 0 to 65535 is needed", text));
}

}  // namespace

BoardOptions parse_board_options(std::span<const std::string> arguments) {
  BoardOptions options;
  BoardWords words(arguments);
  while (words.next()) {
    const std::string& word = words.word();
    if (word == "--help" || word == "-h") {
      options.help = true;
      return options;
    }
    if (word == "--host") {
      options.host = words.value();
    } else if (word == "--port") {
      options.port = port_of(words.value());
    } else if (word == "--token") {
      options.needs_token = true;
    } else if (word == "--token-file") {
      options.token_file = words.value();
    } else if (word.starts_with('-')) {
      throw ConfigError(
          fmt::format("unknown option {}; see lockstep board --help", word));
    } else if (!options.folder.empty()) {
      throw ConfigError(fmt::format(
          "lockstep board takes one folder: {} and {} are two; name the one "
          "above both",
          options.folder.string(), word));
    } else {
      options.folder = word;
    }
  }
  return options;
}

std::string board_help() { return kBoardHelp; }

}  // namespace lockstep::board
