// The tree of lockstep/value.h with tensors as they lie in files.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>
#include <variant>

#include "lockstep/formats/tensor_record.h"
#include "lockstep/value.h"

namespace lockstep::formats {

using Value = BasicValue<TensorRecord>;

// A tensor where std::visit() finds it in data().
template <typename Tensor>
const Tensor& unboxed(const Tensor& tensor) {
  return tensor;
}
template <typename Tensor>
const Tensor& unboxed(const Boxed<Tensor>& tensor) {
  return *tensor;
}

// The same tree with other tensors: each one is given to `convert`.
template <typename To, typename From, typename Convert>
BasicValue<To> map_tensors(const BasicValue<From>& value,
                           const Convert& convert) {
  using Old = BasicValue<From>;
  using New = BasicValue<To>;
  const auto map_list = [&](const typename Old::List& items) {
    typename New::List mapped;
    mapped.reserve(items.size());
    for (const Old& item : items) {
      mapped.push_back(map_tensors<To>(item, convert));
    }
    return mapped;
  };
  return std::visit(
      [&](const auto& data) -> New {
        using T = std::decay_t<decltype(data)>;
        if constexpr (std::same_as<T, typename Old::Slot>) {
          return New(To(convert(unboxed(data))));
        } else if constexpr (std::same_as<T, typename Old::List>) {
          return New(map_list(data));
        } else if constexpr (std::same_as<T, typename Old::Tuple>) {
          return New::tuple(map_list(data.items));
        } else if constexpr (std::same_as<T, typename Old::Dict>) {
          typename New::Dict mapped;
          mapped.reserve(data.size());
          for (const auto& entry : data) {
            mapped.push_back({map_tensors<To>(entry.key, convert),
                              map_tensors<To>(entry.value, convert)});
          }
          return New(std::move(mapped));
        } else {
          return New(data);
        }
      },
      value.data());
}

}  // namespace lockstep::formats
