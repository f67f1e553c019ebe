// Every rank brings a number; every rank gets the sum.
//
//   lockstep run --nproc-per-node 4 01_all_reduce
//
// prints "rank 0 of 4: the sum is 10" on each rank (1 + 2 + 3 + 4).
#include <torch/torch.h>

#include <iostream>
#include <sstream>

#include "lockstep/lockstep.h"

int main() {
  return lockstep::run_program([] {
    const auto world = lockstep::World::from_environment();
    auto number = torch::full({1}, world.rank() + 1, world.device());
    world.all_reduce(number);
    std::ostringstream line;
    line << "rank " << world.rank() << " of " << world.size() << ": the sum is "
         << number.item<int64_t>() << "\n";
    std::cout << line.str() << std::flush;
  });
}
