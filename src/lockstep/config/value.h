// What a setting may hold, and how a variable of the program is bound to it.
//
// All code between the user's text and the variable works on one form: a list
// of scalars. A plain variable has one, an optional none or one, a vector any
// number.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace lockstep {

enum class ScalarKind { kBool, kInteger, kNumber, kText };
using SettingScalar = std::variant<bool, int64_t, double, std::string>;
using SettingValue = std::vector<SettingScalar>;

enum class ValueShape { kOne, kOptional, kList };

// Reads and writes one variable of the program.
struct Binding {
  ScalarKind kind = ScalarKind::kText;
  ValueShape shape = ValueShape::kOne;
  std::function<SettingValue()> read = {};
  std::function<void(const SettingValue&)> write = {};
};

namespace internal {

template <typename T>
constexpr bool kIsScalar =
    std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
    std::is_same_v<T, double> || std::is_same_v<T, std::string>;

template <typename T>
constexpr ScalarKind kKindOf =
    std::is_same_v<T, bool>      ? ScalarKind::kBool
    : std::is_same_v<T, int64_t> ? ScalarKind::kInteger
    : std::is_same_v<T, double>  ? ScalarKind::kNumber
                                 : ScalarKind::kText;

template <typename T>
struct Bind {
  static_assert(kIsScalar<T>,
                "a setting is a bool, int64_t, double or std::string, a "
                "std::optional of those, or a std::vector of the last three");
  static Binding to(T& target) {
    return {kKindOf<T>, ValueShape::kOne,
            [&target] { return SettingValue{SettingScalar(target)}; },
            [&target](const SettingValue& value) {
              target = std::get<T>(value.front());
            }};
  }
};

template <typename T>
struct Bind<std::optional<T>> {
  static_assert(kIsScalar<T>, "an optional of bool, int64_t, double or text");
  static Binding to(std::optional<T>& target) {
    return {kKindOf<T>, ValueShape::kOptional,
            [&target] {
              return target ? SettingValue{SettingScalar(*target)}
                            : SettingValue{};
            },
            [&target](const SettingValue& value) {
              target.reset();
              if (!value.empty()) target = std::get<T>(value.front());
            }};
  }
};

template <typename T>
struct Bind<std::vector<T>> {
  static_assert(kIsScalar<T> && !std::is_same_v<T, bool>,
                "a vector of int64_t, double or text");
  static Binding to(std::vector<T>& target) {
    return {kKindOf<T>, ValueShape::kList,
            [&target] { return SettingValue(target.begin(), target.end()); },
            [&target](const SettingValue& value) {
              target.clear();
              for (const SettingScalar& item : value) {
                target.push_back(std::get<T>(item));
              }
            }};
  }
};

}  // namespace internal

// The target must outlive the binding.
template <typename T>
Binding bind_value(T& target) {
  return internal::Bind<T>::to(target);
}

}  // namespace lockstep
