#include "lockstep/parallel/bucket_layout.h"

#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::parallel {

void check_layout(const BucketLayout& layout, size_t num_parameters) {
  std::vector<int> seen(num_parameters, 0);
  for (const auto& bucket : layout) {
    for (const size_t index : bucket) {
      if (index >= num_parameters || seen[index]++ > 0) {
        throw ConfigError(fmt::format(
            "the bucket layout does not fit this module: position {} occurs "
            "twice or is not below {}; it belongs to another module",
            index, num_parameters));
      }
    }
  }
  for (size_t index = 0; index < num_parameters; ++index) {
    if (seen[index] == 0) {
      throw ConfigError(fmt::format(
          "the bucket layout does not fit this module: parameter {} of {} is "
          "in no bucket; it belongs to another module",
          index, num_parameters));
    }
  }
}

}  // namespace lockstep::parallel
