// A collective over shared memory, drawn at random: kind, type, operation,
// size, root, and whether the tensor lies in the arena.
#pragma once

#include <random>
#include <string>

#include "support/forked_ranks.h"

namespace lockstep::testing {

// All ranks draw the same call from the same seed, and know its result: values
// are small whole numbers, exact in every type and in every order.
class RandomCall {
 public:
  RandomCall(uint32_t seed, const ForkedRank& self);

  // Runs it; an empty text, or what is wrong.
  std::string run(ForkedRank& self) const;

 private:
  template <typename Number>
  std::string run_as(ForkedRank& self) const;
  template <typename Number>
  std::string check(const std::vector<Number>& result,
                    const std::vector<std::vector<Number>>& gathered) const;
  int64_t value(int rank, size_t index) const;
  int64_t reduced(size_t index) const;
  std::string describe(size_t index) const;

  std::mt19937 random_;
  int rank_;
  size_t size_;
  comm::SharedKind kind_;
  comm::Element element_;
  comm::Reduction reduction_;
  int root_;
  size_t count_;
  bool in_heap_;
};

}  // namespace lockstep::testing
