// World: rank of this process and communication with its peers.
//
// Tensors travel over NCCL (CUDA) or, on the CPU, through shared memory where
// all ranks share a machine and over Gloo elsewhere (LOCKSTEP_EXCHANGE); small
// values and votes over a second group on the CPU, so that they work while a
// GPU is busy or stuck. In a world of one nothing is connected and every call
// returns at once.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "lockstep/device.h"
#include "lockstep/export.h"

namespace c10d {
class ProcessGroup;
}

namespace lockstep::base {
class StatusWriter;
}  // namespace lockstep::base

namespace lockstep::comm {
class SharedArena;
class Vote;
}  // namespace lockstep::comm

namespace lockstep {

struct WorldConfig {
  DeviceChoice device = DeviceChoice::kAuto;
  // Limit of every collective and barrier. Unset: TORCH_DISTRIBUTED_TIMEOUT
  // (which lockstep run --timeout exports), NCCL_TIMEOUT, or 600 s.
  std::optional<std::chrono::milliseconds> timeout = {};
};

enum class ReduceOp { kSum, kMean, kMin, kMax };

// A handle: copies share one world. Collectives must be called by all ranks in
// one order, from one thread. They throw PeerError when another rank is gone,
// TimeoutError when one does not arrive; the world is unusable after that.
class LOCKSTEP_EXPORT World {
 public:
  // Reads torchrun's variables; one process when there are none. Selects the
  // device, connects to all ranks and checks that they agree, so that errors
  // are found here and not in a step. Call it once per process, before any use
  // of CUDA; copy the World where it is needed.
  static World from_environment(const WorldConfig& config = {});
  // The same with these variables in place of the process's.
  static World from_environment(
      const WorldConfig& config,
      const std::map<std::string, std::string, std::less<>>& environment);

  // Not movable: a moved-from World would be invalid.
  World(const World&) = default;
  World& operator=(const World&) = default;

  int rank() const;
  int size() const;
  int local_rank() const;
  int local_size() const;
  bool is_main() const { return rank() == 0; }
  c10::Device device() const;
  std::chrono::milliseconds timeout() const;

  // In place, on tensors of this world's device (or the CPU). The result is
  // ready for the current stream when the call returns.
  void all_reduce(at::Tensor& tensor, ReduceOp op = ReduceOp::kSum) const;
  void broadcast(at::Tensor& tensor, int from = 0) const;
  // One tensor per rank, in rank order; all ranks must pass the same shape.
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) const;

  // Small values, over the CPU channel.
  template <std::floating_point Number>
  double reduce(Number value, ReduceOp op) const {
    return reduce_real(value, op);
  }
  template <std::integral Number>
  int64_t reduce(Number value, ReduceOp op) const {
    return reduce_whole(static_cast<int64_t>(value), op);
  }
  bool any(bool value) const;
  bool all(bool value) const;
  // Text of any length per rank, in rank order.
  std::vector<std::string> gather_texts(const std::string& text) const;
  std::string broadcast_text(const std::string& text, int from = 0) const;

  // Runs `action` on rank 0 only and gives its result (text, a number or
  // nothing) to every rank. If it throws, every rank throws, so no rank waits
  // forever.
  template <typename Action>
  auto run_on_rank0_and_broadcast(Action action) const;

  // Every rank waits for every other, at most `limit` (default: the world's
  // timeout); the error names the missing ranks. Does not wait for work queued
  // on a GPU.
  void barrier(std::optional<std::chrono::milliseconds> limit = {}) const;

  // Recovery from memory, in a job started with lockstep run --recover memory
  // (docs/how-to/recovery.md). When a rank is killed or crashes, collectives of
  // the others throw; they keep their state, call reform(), and hand it to the
  // rank that the launcher starts in its place. On several nodes rank() and
  // size() may be others afterwards.
  bool can_reform() const;
  // Whether an error that a collective or backward() has thrown means that a
  // rank is gone, and reform() helps. Over Gloo not all of these are
  // PeerErrors.
  bool can_reform_after(const std::exception& error) const;
  // Nodes of the job come or go: collectives over the network fail from here
  // on. To be asked after each step, where no collective may be under way that
  // would tell.
  bool must_reform() const;
  // On GPUs collectives that lost a rank do not throw: they end, and what they
  // leave in memory is worth nothing. To be asked before a result counts.
  bool has_lost_ranks() const;
  // Waits for what is queued on the current stream. On GPUs only; throws
  // PeerError when a rank was lost meanwhile, and the results are worth
  // nothing.
  void wait_for_device() const;
  // Lets go of the other ranks, without waiting: collectives that are under way
  // end, also on the GPU.
  void let_go() const;
  // This rank holds the state of the training: from here on a rank that dies is
  // replaced. Called once by each rank, by a new one when it has the state.
  void offer_state() const;
  // After such an error: lets go of the old connections, waits until the
  // launcher has replaced the ranks that died, or all ranks have called it, and
  // connects anew. What was made with this world (DDP, votes, a StepGraph) must
  // be gone and is made again afterwards. Throws PeerError when a rank is gone
  // and was not replaced, ConfigError unless can_reform().
  void reform() const;
  // Ranks that have not called offer_state() yet, once ranks were replaced;
  // empty before.
  const std::vector<int>& ranks_without_state() const;
  // After the last collective: waits for the other ranks, at most the world's
  // timeout. From here on a rank that dies is not replaced. Throws PeerError
  // when one died meanwhile, which is survived by reform() like any other.
  // Does nothing unless can_reform().
  void withdraw_state() const;

  // Leaves the group cleanly: waits a short while for the others, then closes.
  // Called by the last handle's destructor too (unless an error is being
  // thrown).
  void close() const;

  // For the layers above: c10d's group of all ranks, this rank's status page
  // (base/status.h), and votes (comm/vote.h), which all ranks must create in
  // the same order.
  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const;
  base::StatusWriter& status() const;
  comm::Vote make_vote() const;
  // Memory that all ranks of this world share; null where they do not.
  const std::shared_ptr<comm::SharedArena>& shared_arena() const;

 private:
  struct Impl;
  double reduce_real(double value, ReduceOp op) const;
  int64_t reduce_whole(int64_t value, ReduceOp op) const;
  explicit World(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  // Gives rank 0's text to every rank, or throws its error on every rank.
  std::string share(const std::string& text, std::exception_ptr error) const;

  std::shared_ptr<Impl> impl_;
};

namespace detail {
LOCKSTEP_EXPORT std::string to_text(int64_t value);
LOCKSTEP_EXPORT std::string to_text(double value);
LOCKSTEP_EXPORT void from_text(const std::string& text, int64_t& value);
LOCKSTEP_EXPORT void from_text(const std::string& text, double& value);
}  // namespace detail

template <typename Action>
auto World::run_on_rank0_and_broadcast(Action action) const {
  using Result = std::invoke_result_t<Action>;
  static_assert(std::is_void_v<Result> || std::is_arithmetic_v<Result> ||
                    std::is_same_v<Result, std::string>,
                "the action must return a number, a std::string or nothing");
  std::string shared;
  std::exception_ptr thrown;
  if (is_main()) {
    try {
      if constexpr (std::is_void_v<Result>) {
        action();
      } else if constexpr (std::is_integral_v<Result>) {
        shared = detail::to_text(static_cast<int64_t>(action()));
      } else if constexpr (std::is_floating_point_v<Result>) {
        shared = detail::to_text(static_cast<double>(action()));
      } else {
        shared = action();
      }
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  std::string text = share(shared, thrown);
  if constexpr (std::is_integral_v<Result>) {
    int64_t value = 0;
    detail::from_text(text, value);
    return static_cast<Result>(value);
  } else if constexpr (std::is_floating_point_v<Result>) {
    double value = 0;
    detail::from_text(text, value);
    return static_cast<Result>(value);
  } else if constexpr (!std::is_void_v<Result>) {
    return text;
  }
}

}  // namespace lockstep
