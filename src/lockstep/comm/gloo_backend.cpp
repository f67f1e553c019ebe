#include "lockstep/comm/gloo_backend.h"

#include <torch/version.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/comm/recorded_backend.h"

// The gloo shim headers mirror what this header of libtorch names, no more.
static_assert(
    TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 11,
    "check comm/gloo_shim against this libtorch's ProcessGroupGloo.hpp");

namespace lockstep::comm {
namespace {

using Gloo = c10d::ProcessGroupGloo;

// Gloo's futures complete when the collective does. Its reduce_scatter has
// none: it is an all_reduce, which is noted itself, and a copy when it is
// waited for.
class FutureCompletion {
 public:
  explicit FutureCompletion(const base::StatusWriter& status)
      : status_(status) {}

  void track(const c10::intrusive_ptr<c10d::Work>& work, int64_t number) {
    c10::intrusive_ptr<c10::ivalue::Future> future;
    try {
      future = work->getFuture();
    } catch (const c10::Error&) {
      status_.finish_collective();
      return;
    }
    future->addCallback([status = status_, number](auto& done) mutable {
      if (done.hasError()) {
        status.fail_collective(number);
      } else {
        status.finish_collective();
      }
    });
  }

 private:
  base::StatusWriter status_;
};

c10::intrusive_ptr<Gloo::Options> make_options(const GlooConfig& config) {
  // Gloo waits five times as long for the first connection of two ranks.
  constexpr int kGlooFactor = 5;
  auto options = Gloo::Options::create(
      config.connect_timeout.count() > 0 ? config.connect_timeout / kGlooFactor
                                         : config.timeout);
  options->group_name = config.name;
  if (config.interfaces) {
    for (const std::string& name : base::split(*config.interfaces, ',')) {
      options->devices.push_back(Gloo::createDeviceForInterface(name));
    }
  } else {
    options->devices.push_back(Gloo::createDeviceForHostname(config.address));
  }
  // As Python does: two threads a device.
  options->threads = static_cast<int>(options->devices.size()) * 2;
  return options;
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(
    const c10::intrusive_ptr<c10d::Store>& store, const Place& place,
    const GlooConfig& config) {
  auto own_store = c10::make_intrusive<c10d::PrefixStore>(config.name, store);
  auto options = make_options(config);
  c10::intrusive_ptr<Gloo> backend;
  if (config.status) {
    backend = c10::make_intrusive<Recorded<Gloo, FutureCompletion>>(
        *config.status, own_store, place.rank, place.world_size,
        std::move(options));
  } else {
    backend = c10::make_intrusive<Gloo>(own_store, place.rank, place.world_size,
                                        std::move(options));
  }
  if (config.connect_timeout.count() > 0) backend->setTimeout(config.timeout);
  return backend;
}

}  // namespace lockstep::comm
