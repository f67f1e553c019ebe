#include "lockstep/comm/shared_tensors.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/comm/shared_arena.h"
#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

// Each tensor begins with a cache line of its own.
size_t aligned_bytes(const at::Tensor& tensor) {
  constexpr size_t kLine = 64;
  return (tensor.nbytes() + kLine - 1) / kLine * kLine;
}

// Where the tensors begin in the memory of rank 0.
size_t take_from_rank0(const World& world, size_t bytes) {
  const auto& arena = world.shared_arena();
  return static_cast<size_t>(world.run_on_rank0_and_broadcast([&]() -> int64_t {
    std::byte* memory = arena->allocate(bytes);
    if (memory == nullptr) {
      throw ConfigError(fmt::format(
          "there is no shared memory for {} of weights, optimizer state and "
          "averages; raise the memory limit of the job (its control group, "
          "ulimit -v) or leave --shard_optimizer out",
          base::bytes_text(static_cast<int64_t>(bytes))));
    }
    return memory - arena->at(0, 0);
  }));
}

}  // namespace

std::vector<at::Tensor> make_shared_tensors(
    const World& world, const std::vector<at::Tensor>& like) {
  const std::shared_ptr<SharedArena>& arena = world.shared_arena();
  if (arena == nullptr) {
    throw ConfigError(
        "--shard_optimizer needs CPU processes of one machine that share "
        "memory, and these do not (GPUs, several machines, or "
        "LOCKSTEP_EXCHANGE=gloo); leave it out");
  }
  size_t bytes = 0;
  for (const at::Tensor& tensor : like) bytes += aligned_bytes(tensor);
  if (bytes == 0) return like;
  std::byte* memory = arena->at(0, take_from_rank0(world, bytes));
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& tensor : like) {
    tensors.push_back(at::from_blob(
        memory, tensor.sizes(), tensor.strides(), [arena](void*) {},
        tensor.options()));
    memory += aligned_bytes(tensor);
  }
  return tensors;
}

}  // namespace lockstep::comm
