// A value on the heap that is copied as the value itself would be: for large
// alternatives of a variant, since a variant is as large as its largest one.
#pragma once

#include <memory>
#include <utility>

namespace lockstep {

// Never empty, unless it was moved from.
template <typename T>
class Boxed {
 public:
  explicit(false) Boxed(T value)
      : value_(std::make_unique<T>(std::move(value))) {}
  Boxed(const Boxed& other) : value_(std::make_unique<T>(*other)) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(const Boxed& other) {
    if (this != &other) value_ = std::make_unique<T>(*other);
    return *this;
  }
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace lockstep
