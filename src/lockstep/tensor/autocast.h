// Mixed precision inside a scope: what `with torch.autocast(...)` is in Python.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <optional>

namespace lockstep::tensor {

// Until its end, operations of this thread on the device type run in `dtype`
// where that is safe. Without a dtype it does nothing; float32 switches a
// surrounding autocast off. Scopes nest; casts of weights are kept until the
// outermost one ends. Belongs around forward and loss only: run backward()
// outside. Must end on the thread that made it.
class Autocast {
 public:
  Autocast(c10::DeviceType device, std::optional<c10::ScalarType> dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  struct Saved {
    bool is_enabled;
    c10::ScalarType dtype;
  };
  c10::DeviceType device_;
  std::optional<Saved> saved_;
};

}  // namespace lockstep::tensor
