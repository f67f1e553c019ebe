#include "lockstep/comm/shared_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/comm/store_barrier.h"
#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

constexpr const char* kVariable = "LOCKSTEP_EXCHANGE";

// What a rank writes: "yes" and words, or a reason for Gloo. A reason that is a
// problem is reported; a wish or another machine is none.
constexpr const char* kYes = "yes";
constexpr const char* kByMachine = "machine";  // And its name.
constexpr const char* kWish = "wish";
constexpr const char* kProblem = "problem";

struct Answer {
  std::string kind;
  std::string text;
};

std::string answer_key(const char* round, int rank) {
  return fmt::format("exchange/{}/{}", round, rank);
}

Answer parse_answer(const std::vector<uint8_t>& bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const auto space = text.find(' ');
  if (space == std::string::npos) return {text, ""};
  return {text.substr(0, space), text.substr(space + 1)};
}

// The number of a rank in the job.
int job_rank(const ExchangeConfig& config, size_t rank) {
  return rank < config.job.ranks.size() ? config.job.ranks[rank]
                                        : static_cast<int>(rank);
}

// One round: writes this rank's answer, and reads those of all.
class Rounds {
 public:
  Rounds(c10d::Store& store, const Place& place, const ExchangeConfig& config)
      : store_(store), place_(place), config_(config) {}

  void answer(const char* round, const Answer& own) {
    store_.set(answer_key(round, place_.rank),
               fmt::format("{} {}", own.kind, own.text));
  }

  std::vector<Answer> collect(const char* round) {
    std::vector<std::string> keys;
    for (int rank = 0; rank < place_.world_size; ++rank) {
      keys.push_back(answer_key(round, rank));
    }
    const Missing missing = wait_for_keys(store_, keys, config_.timeout);
    if (!missing.positions.empty()) throw_missing(missing);
    std::vector<Answer> answers;
    for (const std::string& key : keys) {
      answers.push_back(parse_answer(store_.get(key)));
    }
    return answers;
  }

  // The first refusal that has been written so far.
  std::optional<std::string> find_refusal(const char* round) {
    for (int rank = 0; rank < place_.world_size; ++rank) {
      const std::string key = answer_key(round, rank);
      if (!store_.check({key})) continue;
      const Answer answer = parse_answer(store_.get(key));
      if (answer.kind != kYes) return answer.text;
    }
    return std::nullopt;
  }

 private:
  [[noreturn]] void throw_missing(const Missing& missing) const {
    std::vector<int> absent;
    for (const auto rank : missing.positions) {
      absent.push_back(job_rank(config_, static_cast<size_t>(rank)));
    }
    const std::string late = base::list_of(absent);
    const int own = job_rank(config_, static_cast<size_t>(place_.rank));
    if (missing.store_lost) {
      throw PeerError(fmt::format(
          "{0} ended while rank {1} agreed with rank(s) {2} on the exchange of "
          "tensors; look for the first error of {0}",
          store_host(place_), own, late));
    }
    throw TimeoutError(fmt::format(
        "rank {} waited {} for rank(s) {} to agree on the exchange of tensors. "
        "--timeout, TORCH_DISTRIBUTED_TIMEOUT and NCCL_TIMEOUT set the limit",
        own,
        base::duration_text(static_cast<double>(config_.timeout.count()) *
                            1e-3),
        late));
  }

  c10d::Store& store_;
  const Place& place_;
  const ExchangeConfig& config_;
};

// What this rank has to offer, as long as it is needed to meet the others.
struct Offer {
  SharedRegion region;
  PeerListener listener;
  Answer answer;
};

Offer make_offer(const Place& place, const ExchangeConfig& config) {
  Offer offer;
  const int own = job_rank(config, static_cast<size_t>(place.rank));
  if (config.choice == ExchangeChoice::kHierarchical) {
    offer.answer = {kByMachine, config.machine};
    return offer;
  }
  if (config.choice == ExchangeChoice::kGloo) {
    offer.answer = {kWish, fmt::format("rank {} has {}=gloo", own, kVariable)};
    return offer;
  }
  try {
    offer.region = SharedRegion::create(fixed_region_bytes());
    offer.listener = listen_for_peers(place.world_size);
    offer.answer = {kYes, boot_id() + " " + offer.listener.name};
  } catch (const IoError& error) {
    offer.answer = {kProblem, fmt::format("rank {}: {}", own, error.what())};
  }
  return offer;
}

// A reason for Gloo that all ranks see alike, or none.
std::optional<Answer> find_objection(const std::vector<Answer>& offers) {
  for (const Answer& offer : offers) {
    if (offer.kind != kYes) return offer;
  }
  const auto machine = [](const Answer& offer) {
    return base::split(offer.text, ' ').front();
  };
  for (size_t rank = 1; rank < offers.size(); ++rank) {
    if (machine(offers[rank]) != machine(offers[0])) {
      return Answer{kWish, fmt::format("ranks 0 and {} run on different "
                                       "machines",
                                       rank)};
    }
  }
  return std::nullopt;
}

std::shared_ptr<SharedArena> build_arena(Offer& offer, const Place& place,
                                         const std::vector<Answer>& offers,
                                         Rounds& rounds,
                                         const ExchangeConfig& config) {
  PeerExchange exchange{
      .rank = place.rank,
      .listener = &offer.listener,
      .own_memory = offer.region.fd(),
      .timeout = config.timeout,
      .find_refusal = [&] { return rounds.find_refusal("verdict"); }};
  for (const Answer& answer : offers) {
    exchange.names.push_back(base::split(answer.text, ' ').back());
  }
  auto peers = exchange_descriptors(exchange);
  return std::make_shared<SharedArena>(
      SharedArenaConfig{.rank = place.rank,
                        .own = std::move(offer.region),
                        .peers = std::move(peers),
                        .job = config.job});
}

size_t parse_size(const std::string& text) {
  return static_cast<size_t>(base::parse_integer(text).value_or(0));
}

ExchangeOutcome use_gloo(const Answer& reason, ExchangeChoice choice) {
  if (choice == ExchangeChoice::kShared) {
    throw ConfigError(fmt::format(
        "{}=shared, but the ranks cannot share memory: {}; unset the variable "
        "to let Gloo take over",
        kVariable, reason.text));
  }
  return {.arena = nullptr,
          .machines = {},
          .problem = reason.kind == kProblem ? reason.text : ""};
}

std::vector<std::string> texts_of(const std::vector<Answer>& answers) {
  std::vector<std::string> texts;
  for (const Answer& answer : answers) texts.push_back(answer.text);
  return texts;
}

// All ranks or none; the same error on all ranks otherwise.
bool want_machines(const std::vector<Answer>& offers) {
  std::vector<int> wanting;
  std::vector<int> others;
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    auto& ranks = offers[rank].kind == kByMachine ? wanting : others;
    ranks.push_back(static_cast<int>(rank));
  }
  if (wanting.empty() || others.empty()) return others.empty();
  throw ConfigError(fmt::format(
      "{}=hierarchical is set for rank(s) {} and not for rank(s) {}; set it "
      "for all, or for none",
      kVariable, base::list_of(wanting), base::list_of(others)));
}

ExchangeOutcome share_memory(Offer& offer, const Place& place,
                             const std::vector<Answer>& offers, Rounds& rounds,
                             const ExchangeConfig& config) {
  std::shared_ptr<SharedArena> arena;
  Answer verdict;
  try {
    arena = build_arena(offer, place, offers, rounds, config);
    verdict = {kYes, std::to_string(arena->mapped_bytes())};
  } catch (const IoError& error) {
    const int own = job_rank(config, static_cast<size_t>(place.rank));
    verdict = {kProblem, fmt::format("rank {}: {}", own, error.what())};
  }
  rounds.answer("verdict", verdict);
  const auto verdicts = rounds.collect("verdict");
  for (const Answer& other : verdicts) {
    if (other.kind != kYes) return use_gloo(other, config.choice);
  }
  size_t smallest = arena->mapped_bytes();
  for (const Answer& other : verdicts) {
    smallest = std::min(smallest, parse_size(other.text));
  }
  arena->open_heap(smallest);
  return {.arena = std::move(arena), .machines = {}, .problem = ""};
}

// The ranks of each machine share memory, or all use Gloo.
ExchangeOutcome connect_machines(const c10::intrusive_ptr<c10d::Store>& store,
                                 const Place& place,
                                 const ExchangeConfig& config,
                                 const Machines& machines) {
  const int machine = machines.machine_of(place.rank);
  const auto& ranks = machines.ranks_of(machine);
  ExchangeOutcome outcome;
  if (ranks.size() > 1) {
    Place local = place;
    local.rank = machines.local_rank(place.rank);
    local.world_size = static_cast<int>(ranks.size());
    ExchangeConfig within = config;
    within.choice = ExchangeChoice::kAutomatic;
    within.job = {.ranks = ranks, .size = place.world_size};
    outcome =
        connect_shared_memory(c10::make_intrusive<c10d::PrefixStore>(
                                  fmt::format("machine{}", machine), store),
                              local, within);
  }
  Rounds rounds(*store, place, config);
  const bool is_shared = ranks.size() == 1 || outcome.arena != nullptr;
  rounds.answer("machine", {is_shared ? kYes : kProblem, outcome.problem});
  for (const Answer& other : rounds.collect("machine")) {
    if (other.kind != kYes) return use_gloo(other, config.choice);
  }
  if (machines.count() > 1) outcome.machines = machines;
  return outcome;
}

}  // namespace

ExchangeChoice exchange_choice(const base::Environment& environment) {
  const auto value = base::find(environment, kVariable);
  if (!value) return ExchangeChoice::kAutomatic;
  if (*value == "gloo") return ExchangeChoice::kGloo;
  if (*value == "shared") return ExchangeChoice::kShared;
  if (*value == "hierarchical") return ExchangeChoice::kHierarchical;
  throw ConfigError(fmt::format(
      "{}='{}': it must be gloo, shared or hierarchical; without it ranks of "
      "one machine use shared memory, others Gloo",
      kVariable, *value));
}

ExchangeOutcome connect_shared_memory(
    const c10::intrusive_ptr<c10d::Store>& store, const Place& place,
    const ExchangeConfig& config) {
  Rounds rounds(*store, place, config);
  Offer offer = make_offer(place, config);
  rounds.answer("offer", offer.answer);
  const auto offers = rounds.collect("offer");
  if (want_machines(offers)) {
    return connect_machines(store, place, config, Machines(texts_of(offers)));
  }
  if (const auto objection = find_objection(offers)) {
    return use_gloo(*objection, config.choice);
  }
  return share_memory(offer, place, offers, rounds, config);
}

}  // namespace lockstep::comm
