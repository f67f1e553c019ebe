#include "lockstep/comm/vote.h"

#include <ATen/ops/full.h>

#include "lockstep/comm/explain.h"
#include "lockstep/comm/vote_channel.h"
#include "lockstep/error.h"

namespace lockstep::comm {

struct Vote::Pending {
  at::Tensor value;
  c10::intrusive_ptr<c10d::Work> work;  // Null in a world of one.
};

Vote::Vote(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}
Vote::~Vote() = default;
Vote::Vote(Vote&&) noexcept = default;
Vote& Vote::operator=(Vote&&) noexcept = default;

void Vote::post(int64_t opinion) {
  if (pending_ != nullptr) {
    throw ConfigError(
        "a vote was posted twice without read() between: read the answer of "
        "step k at step k + 1, then post again");
  }
  auto pending = std::make_unique<Pending>();
  pending->value = at::full({1}, opinion, at::kLong);
  if (channel_->backend) {
    std::vector<at::Tensor> tensors{pending->value};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::MAX;
    try {
      pending->work = channel_->backend->allreduce(tensors, options);
    } catch (const std::exception& error) {
      throw_explained(
          error, "posting a vote on rank " + std::to_string(channel_->rank));
    }
  }
  pending_ = std::move(pending);
}

std::optional<int64_t> Vote::read() {
  if (pending_ == nullptr) return std::nullopt;
  const auto pending = std::move(pending_);
  if (pending->work) {
    // Counted when it is read: until then it keeps nobody waiting.
    const int64_t number = channel_->status.start_collective(
        base::Collective::kVote, static_cast<int64_t>(sizeof(int64_t)));
    try {
      pending->work->wait();
    } catch (const std::exception& error) {
      channel_->status.fail_collective(number);
      throw_explained(
          error, "reading a vote on rank " + std::to_string(channel_->rank));
    }
    channel_->status.finish_collective();
  }
  return pending->value.item<int64_t>();
}

}  // namespace lockstep::comm
