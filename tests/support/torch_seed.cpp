// Every test begins with the same random numbers, alone or after others: what
// it draws, and so whether it passes, is not left to chance.
//
//   LOCKSTEP_TEST_SEED=N   other numbers
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace {

uint64_t seed() {
  const char* text = std::getenv("LOCKSTEP_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

class SeedEachTest : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    at::manual_seed(seed());
  }
};

[[maybe_unused]] const bool is_listening = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new SeedEachTest);
  return true;
}();

}  // namespace
