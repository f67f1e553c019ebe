#include "lockstep/output_tensors.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep {
namespace {

struct Own {
  at::Tensor inside;
  std::string note;
};

template <typename Visit>
void visit_tensors(Own& own, Visit&& visit) {
  visit_output(own.inside, visit);
}

template <typename Output>
int count(Output output) {
  int found = 0;
  visit_output(output, [&](at::Tensor&) { ++found; });
  return found;
}

TEST(OutputTensors, AreFoundInEveryUsualShape) {
  const auto t = torch::ones({1});
  EXPECT_EQ(count(t), 1);
  EXPECT_EQ(count(std::vector<at::Tensor>{t, t, t}), 3);
  EXPECT_EQ(count(std::make_pair(t, 2.0)), 1);
  EXPECT_EQ(count(std::make_tuple(t, t, 1, std::string("x"))), 2);
  EXPECT_EQ(count(std::optional<at::Tensor>(t)), 1);
  EXPECT_EQ(count(std::optional<at::Tensor>()), 0);
  EXPECT_EQ(count(std::array<at::Tensor, 2>{t, t}), 2);
  EXPECT_EQ(count(std::map<std::string, at::Tensor>{{"a", t}, {"b", t}}), 2);
  EXPECT_EQ(count(std::vector<std::pair<at::Tensor, at::Tensor>>{{t, t}}), 2);
  EXPECT_EQ(count(Own{t, "x"}), 1);
  EXPECT_EQ(count(std::vector<Own>{{t, ""}, {t, ""}}), 2);
}

TEST(OutputTensors, CanBeReplacedInPlace) {
  auto output = std::make_tuple(torch::zeros({1}), torch::zeros({1}));
  visit_output(output, [](at::Tensor& tensor) { tensor = torch::ones({1}); });
  EXPECT_EQ(std::get<1>(output).item<float>(), 1);
}

}  // namespace
}  // namespace lockstep
