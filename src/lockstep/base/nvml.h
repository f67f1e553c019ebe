// NVIDIA's management library, loaded only when asked.
#pragma once

#include <optional>

namespace lockstep::base {

// Whether this process can reach an NVIDIA driver: without one, loading NVML is
// a waste.
bool has_nvidia_driver();

// Loading costs milliseconds, ending it again too: it stays loaded until the
// process ends and keeps nothing outside of it. Thread-safe, as NVML is.
class Nvml {
 public:
  using Device = void*;

  Nvml();

  bool is_ready() const { return is_ready_; }

  // False also where the library is too old to know the function.
  template <typename... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    using Function = int (*)(Arguments...);
    const auto function = reinterpret_cast<Function>(find(name));
    return function != nullptr && function(arguments...) == 0;
  }

  std::optional<unsigned> count() const;

  // The index counts in PCI order.
  std::optional<Device> device(unsigned index) const;

 private:
  void* find(const char* name) const;

  void* library_ = nullptr;
  bool is_ready_ = false;
};

}  // namespace lockstep::base
