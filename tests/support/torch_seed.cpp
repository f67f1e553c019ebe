// Every test begins with the same random numbers, alone or after others: what
// it draws, and so whether it passes, is not left to chance.
//
//   LOCKSTEP_TEST_SEED=N   other numbers
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace {

uint64_t seed() {
  const char* text = std::getenv("LOCKSTEP_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

// liblockstep_cuda brings it along when a test asks for a GPU. libtorch that
// was asked for CUDA before never finds it.
bool libtorch_cuda_is_loaded() {
  return dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}

class SeedEachTest : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    at::Generator cpu = at::detail::getDefaultCPUGenerator();
    cpu.set_current_seed(seed());
    if (libtorch_cuda_is_loaded()) at::manual_seed(seed());
  }
};

[[maybe_unused]] const bool is_listening = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new SeedEachTest);
  return true;
}();

}  // namespace
