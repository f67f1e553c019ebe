// What is said about connections that were refused: a line for the first of
// each reason at once, and their number later.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep::nodes {

// Thread-safe.
class RefusalLog {
 public:
  RefusalLog();  // Throws IoError.

  void add(const std::string& reason, const std::string& address);

  // Readable when take_first() has something to give.
  int fd() const { return event_.get(); }
  // Lines for reasons that were not named before.
  std::vector<std::string> take_first();
  // These, and how many more there were of each reason since the last call.
  std::vector<std::string> take_all();

 private:
  struct Refusals {
    std::string first_address;
    int64_t count = 0;
    int64_t num_told = 0;
  };

  std::mutex mutex_;
  std::map<std::string, Refusals> refusals_;  // by reason; under mutex_
  base::FileDescriptor event_;
};

}  // namespace lockstep::nodes
