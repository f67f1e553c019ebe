#include "lockstep/comm/place.h"

#include <fmt/format.h>

#include <limits>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr const char* kHowToStart =
    "start the program with 'lockstep run --nproc-per-node N PROGRAM', or set "
    "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for every process";

int in_range(const Environment& environment, const char* name, int64_t low,
             int64_t high, int64_t fallback) {
  const int64_t value = find_integer(environment, name).value_or(fallback);
  if (value < low || value > high) {
    throw ConfigError(
        fmt::format("environment variable {}={} is out of range: "
                    "it must be from {} to {}",
                    name, value, low, high));
  }
  return static_cast<int>(value);
}

void require_set(const Environment& environment, const char* name) {
  if (find(environment, name)) return;
  throw ConfigError(fmt::format(
      "environment variable {} is not set although RANK or WORLD_SIZE is: {}",
      name, kHowToStart));
}

}  // namespace

Place place_from_environment(const Environment& environment) {
  Place place;
  const bool launched =
      find(environment, "RANK") || find(environment, "WORLD_SIZE");
  if (!launched) return place;
  require_set(environment, "RANK");
  require_set(environment, "WORLD_SIZE");
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  place.world_size = in_range(environment, "WORLD_SIZE", 1, kMost, 1);
  place.rank =
      in_range(environment, "RANK", 0, place.world_size - int64_t{1}, 0);
  place.local_world_size = in_range(environment, "LOCAL_WORLD_SIZE", 1,
                                    place.world_size, place.world_size);
  place.local_rank = in_range(environment, "LOCAL_RANK", 0,
                              place.local_world_size - int64_t{1},
                              place.rank % place.local_world_size);
  place.attempt =
      in_range(environment, "TORCHELASTIC_RESTART_COUNT", 0, kMost, 0);
  place.launcher_hosts_store =
      find(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (place.world_size == 1) return place;
  require_set(environment, "MASTER_ADDR");
  require_set(environment, "MASTER_PORT");
  place.master_addr = *find(environment, "MASTER_ADDR");
  place.master_port = in_range(environment, "MASTER_PORT", 1, 65535, 0);
  return place;
}

}  // namespace lockstep
