#include "lockstep/base/place_change.h"

#include <nlohmann/json.hpp>

#include "lockstep/base/hex.h"
#include "lockstep/error.h"

namespace lockstep::base {
namespace {

using nlohmann::json;

constexpr int kPlaceSlot = 2;  // 0 and 1 are those of run/recovery.h.

}  // namespace

void write_place_change(SlotFile& slots, int generation,
                        const PlaceChange& change) {
  slots.write(kPlaceSlot, generation,
              json{{"variables", change.variables},
                   {"store_secret", to_hex(change.store_secret)}}
                  .dump());
}

std::optional<PlaceChange> read_place_change(const SlotFile& slots,
                                             int generation) {
  const auto text = slots.read(kPlaceSlot, generation);
  if (!text) return std::nullopt;
  try {
    const json value = json::parse(*text);
    return PlaceChange{
        .variables = value.at("variables").get<Environment>(),
        .store_secret =
            from_hex(value.at("store_secret").get<std::string>()).value()};
  } catch (const std::exception& error) {
    throw InternalError(
        std::string("the launcher's note of a new world is damaged: ") +
        error.what());
  }
}

bool has_later_place_change(const SlotFile& slots, int generation) {
  return slots.newest(kPlaceSlot).value_or(-1) > generation;
}

bool spans_nodes(const Environment& environment) {
  return find(environment, "LOCKSTEP_ELASTIC") ||
         find_integer(environment, "GROUP_WORLD_SIZE").value_or(1) > 1;
}

Environment current_environment(Environment started) {
  const auto slots = SlotFile::from_environment(started);
  if (!slots) return started;
  const auto newest = slots->newest(kPlaceSlot);
  if (!newest) return started;
  if (const auto change =
          read_place_change(*slots, static_cast<int>(*newest))) {
    for (const auto& [name, value] : change->variables) started[name] = value;
  }
  return started;
}

}  // namespace lockstep::base
