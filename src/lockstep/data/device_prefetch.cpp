#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "lockstep/base/status.h"
#include "lockstep/data/batch_stream.h"

namespace lockstep::data {

struct DevicePrefetch::Copy {
  explicit Copy(c10::Device device)
      : guard(device.type()),
        stream(guard.getStreamFromGlobalPool(device, /*isHighPriority=*/false)),
        finished(device.type()) {}

  c10::impl::VirtualGuardImpl guard;
  c10::Stream stream;
  c10::Event finished;
  std::optional<Batch> ahead;
  std::exception_ptr error;
  std::vector<at::Tensor> pinned;  // Alive until the copies from them are done.
};

DevicePrefetch::DevicePrefetch(c10::Device device) : device_(device) {
  if (!device.is_cpu()) copy_ = std::make_unique<Copy>(device);
}

DevicePrefetch::~DevicePrefetch() = default;

void DevicePrefetch::start_copy(std::optional<Batch> batch) {
  copy_->ahead = std::move(batch);
  if (!copy_->ahead) return;
  const c10::StreamGuard on_copy_stream(copy_->stream);
  copy_->pinned = copy_->ahead->tensors;
  copy_->pinned.push_back(copy_->ahead->seeds);
  for (at::Tensor& tensor : copy_->ahead->tensors) {
    tensor = tensor.to(device_, /*non_blocking=*/true);
  }
  copy_->ahead->seeds = copy_->ahead->seeds.to(device_, /*non_blocking=*/true);
  copy_->finished.record(copy_->stream);
}

std::optional<Batch> DevicePrefetch::take_ready() {
  auto batch = std::move(copy_->ahead);
  copy_->ahead.reset();
  if (!batch) return batch;
  const c10::Stream current = copy_->guard.getStream(device_);
  copy_->finished.block(current);
  // The allocator must not reuse the memory while the current stream still
  // reads it.
  for (const at::Tensor& tensor : batch->tensors) tensor.record_stream(current);
  batch->seeds.record_stream(current);
  return batch;
}

void DevicePrefetch::start_next(BatchSource& source) {
  try {
    start_copy(source.next());
  } catch (...) {
    copy_->error = std::current_exception();
  }
}

std::optional<Batch> DevicePrefetch::next(BatchSource& source) {
  if (copy_ == nullptr) return source.next();
  if (!std::exchange(started_, true)) start_next(source);
  if (const auto error = std::exchange(copy_->error, nullptr)) {
    start_next(source);
    std::rethrow_exception(error);
  }
  auto batch = take_ready();
  if (batch) start_next(source);
  return batch;
}

std::optional<Batch> BatchStream::next() {
  status_.set_phase(base::Phase::kLoadingData);
  auto batch = prefetch_.next(source_);
  status_.set_phase(base::Phase::kReady);
  return batch;
}

}  // namespace lockstep::data
