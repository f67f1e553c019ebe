#include <mutex>
#include <thread>
#include <utility>

#include "lockstep/base/signal_mask.h"
#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint/host_copy.h"
#include "lockstep/checkpoint/record.h"
#include "lockstep/formats/torch_file.h"

namespace lockstep {

struct BackgroundSaver::Impl {
  explicit Impl(BackgroundSaverConfig given) : config(std::move(given)) {}

  void write(const std::filesystem::path& path, const Tree& snapshot) {
    try {
      if (config.before_save) config.before_save();
      formats::write_torch_file(path, checkpoint::to_value(snapshot));
      if (config.on_saved) config.on_saved(path);
    } catch (const std::exception& problem) {
      report(path, problem.what());
    }
  }

  void report(const std::filesystem::path& path, const std::string& what) {
    {
      const std::scoped_lock lock(mutex);
      if (!error) error = what;
    }
    if (config.on_error) config.on_error(path, what);
  }

  BackgroundSaverConfig config;
  std::mutex mutex;
  std::optional<std::string> error;  // guarded by mutex
  checkpoint::HostMemory memory;
  std::thread writer;
};

BackgroundSaver::BackgroundSaver(BackgroundSaverConfig config)
    : impl_(std::make_unique<Impl>(std::move(config))) {}

BackgroundSaver::~BackgroundSaver() { wait(); }

void BackgroundSaver::save(const std::filesystem::path& path,
                           const Tree& tree) {
  wait();  // Before the copy, so that there is only one at a time.
  impl_->memory.rewind();
  Tree snapshot =
      checkpoint::host_copy(tree, checkpoint::CpuTensors::kCopy, impl_->memory);
  const base::AllSignalsBlocked for_the_thread;  // It shall not be interrupted.
  impl_->writer =
      std::thread([impl = impl_.get(), path, snapshot = std::move(snapshot)] {
        impl->write(path, snapshot);
      });
}

void BackgroundSaver::wait() {
  if (impl_->writer.joinable()) impl_->writer.join();
}

std::optional<std::string> BackgroundSaver::take_error() {
  const std::scoped_lock lock(impl_->mutex);
  return std::exchange(impl_->error, std::nullopt);
}

}  // namespace lockstep
