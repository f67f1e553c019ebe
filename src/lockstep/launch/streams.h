// Which of a worker's two output streams an option applies to.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lockstep::launch {

enum class Stream { kOut = 1, kErr = 2 };

// The value of --redirects and --tee: "3" for all ranks, "0:3,12:1" per local
// rank; 1 is stdout, 2 is stderr, 3 is both.
class StreamMap {
 public:
  StreamMap() = default;

  // Throws ConfigError naming the option.
  static StreamMap parse(std::string_view text, std::string_view option);

  bool has(int local_rank, Stream stream) const;
  // True when no rank has any stream.
  bool is_empty() const;

 private:
  int for_all_ = 0;
  std::map<int, int> for_rank_;
};

}  // namespace lockstep::launch
