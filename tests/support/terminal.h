// A pseudo-terminal and what a person in front of it sees.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep::testing {

// Knows \r, \n, ESC[K and the wrapping of lines that are too long; shows other
// control characters as "?".
class Screen {
 public:
  explicit Screen(size_t columns) : columns_(columns) {}

  void show(std::string_view bytes);
  // Without spaces at their ends, and without the last line when it is empty.
  std::vector<std::string> lines() const;

 private:
  void put(char c);

  size_t columns_;
  std::vector<std::string> lines_ = {""};
  size_t column_ = 0;
};

// The processes write into worker_fd(); what they wrote is seen by lines().
class Terminal {
 public:
  explicit Terminal(int columns);

  int worker_fd() const { return worker_end_.get(); }
  // Everything shown until now, scrolled lines too.
  std::vector<std::string> lines();
  // All that came, as it came.
  const std::string& bytes() const { return bytes_; }

 private:
  base::FileDescriptor own_end_;
  base::FileDescriptor worker_end_;
  size_t columns_;
  std::string bytes_;
};

}  // namespace lockstep::testing
