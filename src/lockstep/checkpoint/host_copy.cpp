#include "lockstep/checkpoint/host_copy.h"

#include <ATen/ops/empty.h>

#include <set>
#include <unordered_map>

#include "lockstep/base/shape_text.h"
#include "lockstep/checkpoint/memory_copy.h"
#include "lockstep/error.h"
#include "lockstep/formats/value.h"
#include "lockstep/tensor/device.h"

namespace lockstep::checkpoint {
namespace {

class HostCopier {
 public:
  HostCopier(CpuTensors cpu_tensors, HostMemory& memory)
      : cpu_tensors_(cpu_tensors), memory_(memory) {}

  Tree run(const Tree& tree) {
    formats::map_tensors<at::Tensor>(tree, [&](const at::Tensor& tensor) {
      check(tensor);
      used_bytes_[key(tensor)] += tensor.nbytes();
      return tensor;
    });
    Tree copied = formats::map_tensors<at::Tensor>(
        tree, [&](const at::Tensor& tensor) { return copy(tensor.detach()); });
    copy_all(copies_);
    for (const c10::DeviceIndex index : gpus_) {
      tensor::synchronize(c10::Device(c10::kCUDA, index));
    }
    return copied;
  }

 private:
  static const void* key(const at::Tensor& tensor) {
    return tensor.storage().unsafeGetStorageImpl();
  }

  static void check(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      throw ConfigError("an undefined tensor cannot be saved; leave it out");
    }
    if (tensor.layout() != at::kStrided || tensor.is_quantized() ||
        tensor.is_meta()) {
      throw ConfigError(
          "only dense tensors with data can be saved; this one has shape " +
          base::shape_text(tensor.sizes()) +
          "; use to_dense() or leave it out");
    }
  }

  at::Tensor copy(const at::Tensor& tensor) {
    const bool is_lazy = tensor.is_conj() || tensor.is_neg();
    if (is_lazy || used_bytes_[key(tensor)] < tensor.storage().nbytes()) {
      return to_host(tensor);
    }
    if (tensor.is_cpu() && cpu_tensors_ == CpuTensors::kShare) return tensor;
    auto& storage = storages_[key(tensor)];
    if (!storage) {
      at::Tensor bytes = at::empty({0}, tensor.options().dtype(at::kByte));
      const auto size = static_cast<int64_t>(tensor.storage().nbytes());
      storage = to_host(bytes.set_(tensor.storage(), 0, {size}, {1})).storage();
    }
    at::Tensor host = at::empty({0}, tensor.scalar_type());
    return host.set_(storage, tensor.storage_offset(), tensor.sizes(),
                     tensor.strides());
  }

  at::Tensor to_host(const at::Tensor& tensor) {
    const bool is_cuda = tensor.is_cuda();
    if (is_cuda) gpus_.insert(tensor.device().index());
    const auto [host, is_new] = memory_.take(
        tensor.sizes(),
        at::TensorOptions(tensor.scalar_type()).pinned_memory(is_cuda));
    const bool is_plain = tensor.is_cpu() && tensor.is_contiguous() &&
                          !tensor.is_conj() && !tensor.is_neg();
    if (!is_plain) return host.copy_(tensor, /*non_blocking=*/is_cuda);
    copies_.push_back({.to = host.data_ptr(),
                       .from = tensor.const_data_ptr(),
                       .num_bytes = tensor.nbytes(),
                       .is_new = is_new});
    return host;
  }

  CpuTensors cpu_tensors_;
  HostMemory& memory_;
  std::vector<MemoryCopy> copies_;
  std::unordered_map<const void*, size_t> used_bytes_;
  std::unordered_map<const void*, c10::Storage> storages_;
  std::set<c10::DeviceIndex> gpus_;
};

}  // namespace

HostMemory::Place HostMemory::take(at::IntArrayRef sizes,
                                   const at::TensorOptions& options) {
  if (next_ == tensors_.size()) tensors_.emplace_back();
  at::Tensor& tensor = tensors_[next_++];
  const bool is_new = !tensor.defined() || tensor.sizes() != sizes ||
                      tensor.dtype() != options.dtype() ||
                      tensor.is_pinned() != options.pinned_memory();
  if (is_new) tensor = at::empty(sizes, options);
  return {.tensor = tensor, .is_new = is_new};
}

Tree host_copy(const Tree& tree, CpuTensors cpu_tensors, HostMemory& memory) {
  return HostCopier(cpu_tensors, memory).run(tree);
}

Tree host_copy(const Tree& tree, CpuTensors cpu_tensors) {
  HostMemory memory;
  return host_copy(tree, cpu_tensors, memory);
}

}  // namespace lockstep::checkpoint
