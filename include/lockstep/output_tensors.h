// Finds the tensors inside whatever a module's forward returns.
//
// Supported: tensors, and optionals, vectors, arrays, pairs, tuples and maps of
// supported types. For other structs define a function next to the type, found
// by argument-dependent lookup:
//   template <typename Visit> void visit_tensors(MyOutput& out, Visit&& visit)
//   {
//     lockstep::visit_output(out.logits, visit);
//   }
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep {

template <typename Output, typename Visit>
void visit_output(Output& output, Visit&& visit);

namespace detail {

template <typename T>
concept TupleLike = requires { std::tuple_size<T>::value; };

template <typename T>
concept MapLike = requires { typename T::mapped_type; };

template <typename T>
concept Iterable = requires(T value) {
  value.begin();
  value.end();
};

template <typename T>
concept OptionalLike = requires(T value) {
  value.has_value();
  *value;
};

template <typename T, typename Visit>
concept HasOwnVisitor =
    requires(T value, Visit visit) { visit_tensors(value, visit); };

}  // namespace detail

template <typename Output, typename Visit>
void visit_output(Output& output, Visit&& visit) {
  using T = std::remove_cvref_t<Output>;
  if constexpr (std::is_same_v<T, at::Tensor>) {
    visit(output);
  } else if constexpr (std::is_arithmetic_v<T> ||
                       std::is_same_v<T, std::string>) {  // NOLINT
    // Nothing to find.
  } else if constexpr (detail::HasOwnVisitor<T&, Visit>) {
    visit_tensors(output, visit);
  } else if constexpr (detail::MapLike<T>) {
    for (auto& [key, value] : output) visit_output(value, visit);
  } else if constexpr (detail::Iterable<T>) {
    for (auto& value : output) visit_output(value, visit);
  } else if constexpr (detail::OptionalLike<T>) {
    if (output.has_value()) visit_output(*output, visit);
  } else if constexpr (detail::TupleLike<T>) {
    std::apply([&](auto&... parts) { (visit_output(parts, visit), ...); },
               output);
  } else {
    static_assert(sizeof(T) == 0,
                  "DistributedDataParallel does not know where the tensors of "
                  "this output are: write visit_tensors() beside its type "
                  "(see lockstep/output_tensors.h)");
  }
}

}  // namespace lockstep
