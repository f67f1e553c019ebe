// Kinds of work, where time goes, and the files of a profile.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/profile/profile_table.h"
#include "lockstep/profile/timeline.h"
#include "lockstep/profile/trace_file.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep::profile {
namespace {

using testing::expect_in;

TEST(Kinds, OfOperations) {
  const std::vector<std::pair<const char*, Kind>> cases = {
      {"aten::addmm", Kind::kProducts},
      {"aten::convolution_backward", Kind::kProducts},
      {"aten::scaled_dot_product_attention", Kind::kAttention},
      {"aten::_flash_attention_forward", Kind::kAttention},
      {"aten::mul", Kind::kElementwise},
      {"aten::native_layer_norm", Kind::kElementwise},
      {"aten::_fused_adamw_", Kind::kElementwise},
      {"aten::copy_", Kind::kCopies},
      {"aten::view", Kind::kHost},
      {"detach", Kind::kHost},
      {"AddmmBackward0", Kind::kHost},
      {"autograd::engine::evaluate_function: AddmmBackward0", Kind::kHost},
      {"cudaLaunchKernel", Kind::kHost},
      {"cuLaunchKernelEx", Kind::kHost},
      {"gloo:all_reduce", Kind::kExchange},
      {"c10d::allreduce_", Kind::kExchange},
      {"lockstep::data", Kind::kData},
      {"my own scope", Kind::kOther}};
  for (const auto& [name, kind] : cases) {
    EXPECT_STREQ(kind_name(kind_of_operation(name)), kind_name(kind)) << name;
  }
}

// As CUPTI names them, also in replayed graphs.
TEST(Kinds, OfKernels) {
  const std::vector<std::pair<const char*, Kind>> cases = {
      {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", Kind::kProducts},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
       Kind::kProducts},
      {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128>",
       Kind::kProducts},
      {"void splitKreduce_kernel<32, 16, int, float>", Kind::kProducts},
      {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd>",
       Kind::kAttention},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16",
       Kind::kAttention},
      {"void at::native::vectorized_elementwise_kernel<4, "
       "at::native::CUDAFunctor_add<float>>",
       Kind::kElementwise},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp>",
       Kind::kElementwise},
      {"void lockstep::kernels::(anonymous namespace)::adaln_residual<float>",
       Kind::kElementwise},
      {"void at::native::unrolled_elementwise_kernel<"
       "at::native::direct_copy_kernel_cuda>",
       Kind::kCopies},
      {"Memcpy HtoD (Pinned -> Device)", Kind::kCopies},
      {"Memset (Device)", Kind::kCopies},
      {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)",
       Kind::kExchange},
      {"something_new", Kind::kOther}};
  for (const auto& [name, kind] : cases) {
    EXPECT_STREQ(kind_name(kind_of_kernel(name)), kind_name(kind)) << name;
  }
}

Event host(const char* name, int64_t begin, int64_t end) {
  return {.name = name, .begin_ns = begin, .end_ns = end, .thread = 7};
}
Event device(const char* name, int64_t begin, int64_t end) {
  return {.name = name,
          .begin_ns = begin,
          .end_ns = end,
          .thread = 13,
          .is_device = true};
}

TEST(Timeline, TheInnermostOperationOfTheLoopCounts) {
  const Recording recording{
      .events = {host("AddmmBackward0", 10, 60), host("aten::mm", 20, 50),
                 host("lockstep::data", 70, 80), host("aten::stack", 72, 78),
                 host("mine", 90, 95),
                 Event{.name = "aten::mul",
                       .begin_ns = 0,
                       .end_ns = 100,
                       .thread = 8}},
      .begin_ns = 0,
      .end_ns = 100,
      .main_thread = 7,
      .num_steps = 1};
  const TimeByKind time = time_by_kind(recording);
  EXPECT_EQ(time.of(Kind::kProducts), 30);
  EXPECT_EQ(time.of(Kind::kData), 10);
  EXPECT_EQ(time.of(Kind::kOther), 5);
  EXPECT_EQ(time.of(Kind::kHost), 55);
  EXPECT_EQ(time.of(Kind::kElementwise), 0) << "another thread";
  EXPECT_EQ(time.unknown.at("mine"), 5);
  EXPECT_EQ(time.total(), 100);
}

TEST(Timeline, APauseBehindACollectiveIsExchange) {
  const Recording recording{
      .events = {host("torch::autograd::AccumulateGrad", 10, 20),
                 host("aten::add_", 60, 70)},
      .collectives = {15},
      .begin_ns = 0,
      .end_ns = 100,
      .main_thread = 7};
  const TimeByKind time = time_by_kind(recording);
  EXPECT_EQ(time.of(Kind::kExchange), 40);
  EXPECT_EQ(time.of(Kind::kHost), 10 + 10 + 30);
  EXPECT_EQ(time.of(Kind::kElementwise), 10);
}

TEST(Timeline, OfAGpuAnExchangeCountsWhereNothingElseRuns) {
  const Recording recording{
      .events = {device("sm90_gemm", 10, 40),
                 device("ncclDevKernel_AllReduce", 30, 70),
                 device("elementwise_kernel", 35, 45),
                 device("Memcpy HtoD", 60, 80), host("lockstep::data", 75, 90),
                 host("aten::mm", 0, 100)},
      .begin_ns = 0,
      .end_ns = 100,
      .main_thread = 7};
  const TimeByKind time = time_by_kind(recording);
  EXPECT_EQ(time.of(Kind::kProducts), 30);
  EXPECT_EQ(time.of(Kind::kElementwise), 5);
  EXPECT_EQ(time.of(Kind::kExchange), 15);
  EXPECT_EQ(time.of(Kind::kCopies), 20);
  EXPECT_EQ(time.of(Kind::kData), 10);
  EXPECT_EQ(time.of(Kind::kHost), 20);
  EXPECT_EQ(time.total(), 100);
}

TEST(TraceFile, RanksMergeOnOneClock) {
  const testing::TempDir folder;
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank < 2; ++rank) {
    const Recording recording{
        .events = {host("aten::\"mm\"", 1'000'500 + rank, 1'002'000),
                   device("gemm", 1'001'000, 1'003'000)},
        .collectives = {1'001'500},
        .main_thread = 7};
    files.push_back(folder.path() / ("rank" + std::to_string(rank)));
    std::ofstream(files.back()) << trace_text(recording, rank, 1'000'000);
  }
  files.push_back(folder.path() / "missing");
  EXPECT_EQ(merge_traces(files, folder.path() / "all"), 2);
  const auto all =
      nlohmann::json::parse(base::read_file(folder.path() / "all"));
  std::map<int, int> operations;
  for (const auto& event : all.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++operations[event.at("pid").get<int>()];
    if (event.at("name") == "aten::\"mm\"") {
      EXPECT_DOUBLE_EQ(event.at("ts"), 0.5 + 0.001 * event["pid"].get<int>());
    } else {
      EXPECT_EQ(event.at("dur"), 2.0);
      EXPECT_EQ(event.at("cat"), "products");
    }
  }
  EXPECT_EQ(operations, (std::map<int, int>{{0, 2}, {1, 2}}));
}

TEST(ProfileTable, ShowsEveryKindAndTheCost) {
  RankProfile profile{
      .rank = 0, .num_steps = 2, .step_ms = 11, .before_ms = 10};
  profile.time.ns[0] = 16'000'000;
  profile.time.ns[7] = 6'000'000;
  profile.time.unknown["mine"] = 6'000'000;
  const RankProfile again = parse_profile(profile_json(profile));
  EXPECT_EQ(again.time.ns, profile.time.ns);
  EXPECT_EQ(again.time.unknown, profile.time.unknown);
  const std::string table = profile_table(std::vector{profile, again});
  expect_in(table, "profile of 2 steps on 2 ranks");
  for (size_t i = 0; i < kNumKinds; ++i) {
    expect_in(table, kind_name(static_cast<Kind>(i)));
  }
  expect_in(table, "8.000    72.7");
  expect_in(table, "recording costs 10.0 %");
  expect_in(table, "other: mine");
  EXPECT_THROW(parse_profile("{}"), FormatError);
  EXPECT_THROW(parse_profile("x"), FormatError);
}

}  // namespace
}  // namespace lockstep::profile
