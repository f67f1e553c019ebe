#include "lockstep/formats/value.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/messages.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

using testing::refusal;
TEST(Value, IsBuiltAndReadByKey) {
  formats::Value value;
  value["epoch"] = 3;
  value["lr"] = 0.5;
  value["on"] = true;
  value["name"] = "x";
  value["state"][7]["step"] = 1;
  value["list"].push_back(4);
  value["list"].push_back(formats::Value());
  EXPECT_EQ(value.at("epoch").as_int(), 3);
  EXPECT_EQ(value.at("epoch").as_double(), 3.0);
  EXPECT_EQ(value.at("lr").as_double(), 0.5);
  EXPECT_TRUE(value.at("on").as_bool());
  EXPECT_EQ(value.at("name").as_string(), "x");
  EXPECT_EQ(value.at("state").at(7).at("step").as_int(), 1);
  EXPECT_EQ(value.at("list").at(0).as_int(), 4);
  EXPECT_EQ(value.at("list").as_list().size(), 2u);
  EXPECT_FALSE(value.at("state").find(8).has_value());
  EXPECT_EQ(value.find("nothing"), nullptr);
}

TEST(Value, ErrorsNameTheWholePath) {
  formats::Value value;
  value["optimizer"]["state"][0]["step"] = "five";
  value["args"] = Opaque{"argparse.Namespace"};
  const auto state = value.at("optimizer").at("state");
  EXPECT_EQ(refusal<FormatError>([&] { state.at(0).at("step").as_tensor(); }),
            "checkpoint: 'optimizer.state.0.step' is a string, expected a "
            "tensor");
  EXPECT_EQ(refusal<FormatError>([&] { state.at(1); }),
            "checkpoint: 'optimizer.state.1' is missing");
  EXPECT_EQ(refusal<FormatError>([&] { value.at("args").at("lr"); }),
            "checkpoint: 'args' is an object of class argparse.Namespace, "
            "expected a dict");
  EXPECT_EQ(refusal<FormatError>([&] { formats::Value(3).at("x"); }),
            "checkpoint: the whole is an integer, expected a dict");
}

TEST(Value, IntegersBeyond64BitsBecomeBig) {
  EXPECT_EQ(*formats::Value(uint64_t{1} << 63).get_if<BigInt>(),
            BigInt{"9223372036854775808"});
  EXPECT_EQ(*formats::Value(uint64_t{5}).get_if<int64_t>(), 5);
}

TEST(Value, KeysOfOtherKindsAreBugs) {
  formats::Value value = 3;
  EXPECT_THROW(value["x"], InternalError);
  EXPECT_THROW(value.push_back(1), InternalError);
}

TEST(Value, TensorsAreMappedAndAllElseStays) {
  const formats::Value value = testing::sample_value();
  int count = 0;
  const auto mapped = formats::map_tensors<formats::TensorRecord>(
      value, [&](const formats::TensorRecord& tensor) {
        ++count;
        return tensor;
      });
  EXPECT_EQ(count, 6);
  EXPECT_EQ(testing::describe(mapped), testing::describe(value));
}

}  // namespace
}  // namespace lockstep
