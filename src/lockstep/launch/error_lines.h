// The errors that failing workers print last: what several ranks say alike
// appears once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/launch/console_stream.h"

namespace lockstep::launch {

// An error is lines that begin with "[rank3]: ", as those of run_program() and
// of PyTorch's own handler do. They are held back while the rank may write
// more of them or another rank the same, at most for kAgreeNs. Lines that turn
// out not to be the last of a failed worker are written unchanged, and the
// lines of a rank keep their order. A rank that only repeats another one's
// error, which rank 0's work sends to all, is left out.
class ErrorLines {
 public:
  static constexpr int64_t kAliveNs = 1'000'000'000;   // of a rank that runs
  static constexpr int64_t kAgreeNs = 10'000'000'000;  // of one that failed

  // The console must outlive this object.
  ErrorLines(ConsoleStream& console, int num_ranks)
      : console_(console), num_ranks_(num_ranks) {}

  // A line of this rank's stderr. False: the caller writes it.
  bool take(int rank, std::string_view line, int64_t now_ns);

  void set_end(int rank, int exit_code);
  // Workers go on in a job of another size. What is held is written.
  void set_num_ranks(int num_ranks);
  // A new process has taken its place.
  void set_restarted(int rank) { exit_codes_.erase(rank); }

  // Writes what was held for long enough.
  void release(int64_t now_ns);
  // When release() has something to write; no value: nothing is held.
  std::optional<int64_t> next_release_ns() const;
  // Writes all: no rank is left.
  void finish();

 private:
  struct Held {
    std::string lines;  // without the prefix
    int64_t since_ns = 0;
  };

  bool has_failed(int rank) const;
  bool is_echo(int rank) const;
  int64_t release_ns(int rank, const Held& held) const;
  void write_unchanged(int rank);
  void write_failed();

  ConsoleStream& console_;
  int num_ranks_;
  std::map<int, Held> held_;
  std::map<int, std::string> written_;  // errors of failed ranks
  std::map<int, int> exit_codes_;       // of ranks that ended
};

// "ConfigError on all 8 ranks: ...". `lines` is an error without the prefix of
// its ranks; `where` "all 8 ranks".
std::string shared_error_text(std::string_view lines, std::string_view where);

}  // namespace lockstep::launch
