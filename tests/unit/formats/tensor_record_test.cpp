#include "lockstep/formats/tensor_record.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "lockstep/base/shape_text.h"
#include "lockstep/error.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max() / 2;

formats::TensorRecord shaped(std::vector<int64_t> shape,
                             std::vector<int64_t> strides, int64_t offset = 0) {
  formats::TensorRecord tensor = testing::float_tensor({6}, {1, 2, 3, 4, 5, 6});
  tensor.shape = std::move(shape);
  tensor.strides = std::move(strides);
  tensor.offset = offset;
  return tensor;
}

TEST(TensorRecord, BoundsAreChecked) {
  for (const auto& tensor :
       {shaped({6}, {1}), shaped({2, 3}, {3, 1}), shaped({}, {}, 5),
        shaped({100}, {0}), shaped({0}, {1}, 6), shaped({3}, {2}, 1)}) {
    EXPECT_NO_THROW(formats::check_bounds(tensor, 24))
        << base::shape_text(tensor.shape);
  }
  for (const auto& tensor :
       {shaped({7}, {1}), shaped({6}, {1}, 1), shaped({}, {}, 6),
        shaped({}, {}, -1), shaped({2}, {-1}, 1), shaped({-1}, {1}),
        shaped({kHuge}, {kHuge}), shaped({3, kHuge, kHuge}, {0, 0, 0}),
        shaped({2, 2}, {1}), shaped({0, kHuge, kHuge}, {1, 1, 1}),
        shaped(std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1))}) {
    EXPECT_THROW(formats::check_bounds(tensor, 24), FormatError)
        << base::shape_text(tensor.shape);
  }
}

TEST(TensorRecord, ElementsArePackedInRowMajorOrder) {
  const auto packed = [](const formats::TensorRecord& tensor) {
    const auto storage = formats::packed_elements(tensor);
    const auto bytes = storage->bytes();
    std::vector<float> elements(bytes.size() / sizeof(float));
    if (!bytes.empty()) {
      std::memcpy(elements.data(), bytes.data(), bytes.size());
    }
    return elements;
  };
  EXPECT_EQ(packed(shaped({3, 2}, {1, 3})),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(packed(shaped({3}, {1}, 2)), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(packed(shaped({2, 2}, {0, 5})), (std::vector<float>{1, 6, 1, 6}));
  EXPECT_EQ(packed(shaped({2, 0}, {1, 1})), std::vector<float>{});
  EXPECT_TRUE(formats::is_packed(shaped({2, 1, 3}, {3, 99, 1})));
  EXPECT_FALSE(formats::is_packed(shaped({3, 2}, {1, 3})));
}

}  // namespace
}  // namespace lockstep
