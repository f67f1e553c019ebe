#include "lockstep/engine/train_state.h"

namespace lockstep::engine {

void LossHistory::add(double loss, Keep keep) {
  if (keep == Keep::kLast) values.clear();
  values.push_back(loss);
  ++count;
}

}  // namespace lockstep::engine
