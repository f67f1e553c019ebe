#include "lockstep/engine/replica_check_callback.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/engine/loop.h"
#include "lockstep/error.h"
#include "lockstep/parallel/replica_check.h"

namespace lockstep::engine {
namespace {

std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kMostNames = 3;
  std::vector<std::string> shown(
      names.begin(), names.begin() + std::min(names.size(), kMostNames));
  std::string text = base::join(shown, ", ");
  if (names.size() > kMostNames) {
    text += fmt::format(" and {} more", names.size() - kMostNames);
  }
  return text;
}

}  // namespace

void ReplicaCheckCallback::begin(TrainLoop& loop) {
  checked_step_ = loop.state().step;
}

void ReplicaCheckCallback::after_step(TrainLoop& loop, const Step& /*step*/) {
  is_due_ = every_ > 0 && loop.state().step % every_ == 0;
}

bool ReplicaCheckCallback::due(const TrainLoop& /*loop*/) const {
  return is_due_;
}

bool ReplicaCheckCallback::run(TrainLoop& loop) {
  is_due_ = false;
  check_new(loop);
  return true;
}

void ReplicaCheckCallback::check_new(TrainLoop& loop) {
  if (every_ == 0 || loop.state().step == checked_step_) return;
  const auto found = parallel::compare_replicas(
      loop.world(), loop.learner().replicated_tensors());
  const int64_t last = std::exchange(checked_step_, loop.state().step);
  if (!found) return;
  const std::string text = fmt::format(
      "rank(s) {} hold other values than {} in {} after step {} (equal after "
      "step {}): a bit flipped in memory, or a processor or GPU is faulty",
      base::list_of(found->ranks),
      found->is_healed ? "the majority" : "each other",
      names_text(found->names), loop.state().step, last);
  if (!found->is_healed) {
    throw Error(text +
                "; no majority of ranks agrees, so nobody knows which is "
                "right. Go back to the last checkpoint with --resume latest "
                "(--max-restarts N does it by itself), and test the machine");
  }
  loop.learner().weights_were_set();
  loop.console().warn(text +
                      "; the majority's values were copied to them, and the "
                      "training goes on. Test that machine");
}

}  // namespace lockstep::engine
