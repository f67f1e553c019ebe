// The CUDA side of cuda_graph_cache.cpp; part of liblockstep_cuda.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <memory>

#include "lockstep/export.h"

namespace {

using at::cuda::CUDAGraph;

// Ends the capture; what was captured so far is of no use.
void end_broken(CUDAGraph& graph) {
  try {
    graph.capture_end();
  } catch (const c10::Error&) {
    cudaGetLastError();  // The next launch must not find it.
  }
}

}  // namespace

extern "C" {

// Captures what the body launches on the current device. Null when something in
// it cannot be captured. The graph that it shares memory with may be null.
LOCKSTEP_EXPORT void* lockstep_cuda_record_graph(void (*body)(void*),
                                                 void* context,
                                                 void* shares_memory) {
  auto graph = std::make_unique<CUDAGraph>();
  c10::cuda::getCurrentCUDAStream().synchronize();
  const c10::cuda::CUDAStreamGuard side(c10::cuda::getStreamFromPool());
  // Other threads copy batches and allocate memory during the capture.
  graph->capture_begin(shares_memory == nullptr
                           ? c10::MempoolId_t{0, 0}
                           : static_cast<CUDAGraph*>(shares_memory)->pool(),
                       cudaStreamCaptureModeThreadLocal);
  try {
    body(context);
    graph->capture_end();
  } catch (const c10::Error&) {
    end_broken(*graph);
    return nullptr;
  } catch (...) {
    end_broken(*graph);
    throw;
  }
  return graph.release();
}

// Queues it on the current stream.
LOCKSTEP_EXPORT void lockstep_cuda_replay_graph(void* graph) {
  static_cast<CUDAGraph*>(graph)->replay();
}

LOCKSTEP_EXPORT void lockstep_cuda_free_graph(void* graph) {
  delete static_cast<CUDAGraph*>(graph);
}

}  // extern "C"
