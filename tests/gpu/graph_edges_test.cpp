// The exchange of gradients in a captured step: each bucket's all-reduce lies
// on a branch beside the rest of backward, so that replays overlap them.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "lockstep/ddp.h"
#include "lockstep/tensor/cuda_graph.h"
#include "lockstep/tensor/stream_scope.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

using Names = std::set<std::string>;

// A graph as CUDA describes it in the language of Graphviz.
struct Graph {
  std::map<std::string, std::string> labels = {};
  std::map<std::string, Names> next = {};
  std::map<std::string, Names> before = {};

  explicit Graph(const std::string& text) {
    const std::regex node(R"re("(\w+)"\s*\[[^\]]*label="([^"]*)")re");
    for (std::sregex_iterator it(text.begin(), text.end(), node), end;
         it != end; ++it) {
      labels[(*it)[1]] = (*it)[2];
    }
    const std::regex edge(R"re("(\w+)"\s*->\s*"(\w+)")re");
    for (std::sregex_iterator it(text.begin(), text.end(), edge), end;
         it != end; ++it) {
      next[(*it)[1]].insert((*it)[2]);
      before[(*it)[2]].insert((*it)[1]);
    }
  }

  Names kernels(bool are_exchange) const {
    Names found;
    for (const auto& [name, label] : labels) {
      const bool is_exchange = label.find("nccl") != std::string::npos;
      const bool is_kernel = label.find("KERNEL") != std::string::npos;
      if (is_kernel && is_exchange == are_exchange) found.insert(name);
    }
    return found;
  }

  // Kernels of backward that may run while this one does.
  size_t num_beside(const std::string& name) const {
    Names ordered;
    follow(name, next, ordered);
    follow(name, before, ordered);
    size_t count = 0;
    for (const std::string& kernel : kernels(false)) {
      count += ordered.count(kernel) == 0 ? 1 : 0;
    }
    return count;
  }

 private:
  static void follow(const std::string& name,
                     const std::map<std::string, Names>& edges, Names& seen) {
    const auto found = edges.find(name);
    if (found == edges.end()) return;
    for (const std::string& other : found->second) {
      if (seen.insert(other).second) follow(other, edges, seen);
    }
  }
};

// The graph that the current stream is captured into, so far.
std::string description_of_capture(const World& world) {
  const TempDir folder;
  const std::string file = (folder.path() / "graph.dot").string();
  const c10::impl::VirtualGuardImpl cuda(world.device().type());
  auto* stream = static_cast<cudaStream_t>(
      cuda.getStreamNativeHandle(cuda.getStream(world.device())));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr,
                                     nullptr, nullptr),
            cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaGraphDebugDotPrint(graph, file.c_str(),
                                   cudaGraphDebugDotFlagsVerbose),
            cudaSuccess);
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

constexpr int kLayers = 6;
constexpr int64_t kWidth = 256;

TEST(GpuGraphEdges, BucketsAreReducedBesideTheRestOfBackward) {
  run_ranks(
      {.size = 2,
       .launcher_options = {"--share-gpus"},
       .device = DeviceChoice::kCuda},
      [](const World& world) {
        const tensor::StreamScope stream{world.device()};
        torch::manual_seed(1);
        torch::nn::Sequential net;
        for (int i = 0; i < kLayers; ++i) {
          net->push_back(torch::nn::Linear(kWidth, kWidth));
        }
        net->to(world.device());
        // A layer per bucket.
        DistributedDataParallel<torch::nn::SequentialImpl> ddp(
            net.ptr(), world, {.bucket_cap_mb = 0.25});
        const torch::Tensor x = torch::ones({8, kWidth}, world.device());
        const auto step = [&] {
          for (const auto& parameter : net->parameters()) {
            if (parameter.grad().defined()) parameter.mutable_grad().zero_();
          }
          ddp(x).sum().backward();
        };
        for (int i = 0; i < 12; ++i) step();
        std::string text;
        const auto capture = tensor::CudaGraph::capture([&] {
          step();
          text = description_of_capture(world);
        });
        ASSERT_TRUE(capture.graph) << capture.problem;
        const Graph graph(text);
        const Names reductions = graph.kernels(/*are_exchange=*/true);
        ASSERT_GE(reductions.size(), 3U) << text.substr(0, 4000);
        size_t num_alone = 0;
        for (const std::string& reduction : reductions) {
          num_alone += graph.num_beside(reduction) == 0 ? 1 : 0;
        }
        // The last bucket is complete when backward is.
        EXPECT_LE(num_alone, 1U) << text.substr(0, 4000);
        capture.graph->replay();
        EXPECT_TRUE(net->parameters()[0].grad().isfinite().all().item<bool>());
      });
}

}  // namespace
}  // namespace lockstep::testing
