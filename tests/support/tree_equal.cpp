#include "support/tree_equal.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::testing {
namespace {

void expect_equal_tensors(const at::Tensor& actual, const at::Tensor& expected,
                          const std::string& path) {
  ASSERT_EQ(actual.scalar_type(), expected.scalar_type()) << path;
  ASSERT_EQ(actual.sizes(), expected.sizes()) << path;
  EXPECT_EQ(actual.strides(), expected.strides()) << path;
  // Not torch::equal, which does not know all types.
  const auto bits = [](const at::Tensor& tensor) {
    return tensor.contiguous().reshape({-1}).view(at::kByte);
  };
  EXPECT_TRUE(torch::equal(bits(actual), bits(expected))) << path;
}

void expect_equal_lists(const Tree::List& actual, const Tree::List& expected,
                        const std::string& path) {
  ASSERT_EQ(actual.size(), expected.size()) << path;
  for (size_t i = 0; i < actual.size(); ++i) {
    expect_equal(actual[i], expected[i], path + "." + std::to_string(i));
  }
}

}  // namespace

void expect_equal(const Tree& actual, const Tree& expected,
                  const std::string& path) {
  ASSERT_EQ(kind_text(actual.data().index()),
            kind_text(expected.data().index()))
      << path;
  std::visit(
      [&](const auto& wanted) {
        using T = std::decay_t<decltype(wanted)>;
        const T& given = *actual.get_if<T>();
        if constexpr (std::is_same_v<T, at::Tensor>) {
          expect_equal_tensors(given, wanted, path);
        } else if constexpr (std::is_same_v<T, Tree::List>) {
          expect_equal_lists(given, wanted, path);
        } else if constexpr (std::is_same_v<T, Tree::Tuple>) {
          expect_equal_lists(given.items, wanted.items, path);
        } else if constexpr (std::is_same_v<T, Tree::Dict>) {
          ASSERT_EQ(given.size(), wanted.size()) << path;
          for (size_t i = 0; i < given.size(); ++i) {
            expect_equal(given[i].key, wanted[i].key, path + ".<key>");
            expect_equal(given[i].value, wanted[i].value,
                         path + "." + std::to_string(i));
          }
        } else {
          EXPECT_TRUE(given == wanted) << path;
        }
      },
      expected.data());
}

}  // namespace lockstep::testing
