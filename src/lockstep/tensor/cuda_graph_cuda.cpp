// The CUDA side of cuda_graph.cpp; part of liblockstep_cuda.
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <memory>

#include "lockstep/export.h"

namespace {

using c10::cuda::CUDAStream;

class Graph : public at::cuda::CUDAGraph {
 public:
  // False when something could not be captured.
  bool end_capture() {
    try {
      capture_end();
      return true;
    } catch (const c10::Error&) {
      cudaGetLastError();  // The next launch must not find it.
      // capture_end() leaves them capturing, and every later draw would fail.
      for (const auto& [generator, increment] : captured_generator_states_) {
        generator->capturing_ = false;
      }
      return false;
    }
  }
};

// The default stream cannot be captured.
CUDAStream stream_to_capture() {
  const CUDAStream current = c10::cuda::getCurrentCUDAStream();
  return current == c10::cuda::getDefaultCUDAStream()
             ? c10::cuda::getStreamFromPool()
             : current;
}

}  // namespace

extern "C" {

// Captures what the body launches on the current device. Null when something in
// it cannot be captured or the body returns false. The graph that it shares
// memory with may be null.
LOCKSTEP_EXPORT void* lockstep_cuda_capture_graph(bool (*body)(void*),
                                                  void* context,
                                                  void* shares_memory) {
  auto graph = std::make_unique<Graph>();
  const CUDAStream before = c10::cuda::getCurrentCUDAStream();
  before.synchronize();
  c10::cuda::setCurrentCUDAStream(stream_to_capture());
  // Other threads copy batches and allocate memory during the capture.
  graph->capture_begin(shares_memory == nullptr
                           ? c10::MempoolId_t{0, 0}
                           : static_cast<Graph*>(shares_memory)->pool(),
                       cudaStreamCaptureModeThreadLocal);
  const bool is_complete = body(context);
  const bool is_ended = graph->end_capture();
  c10::cuda::setCurrentCUDAStream(before);
  return is_complete && is_ended ? graph.release() : nullptr;
}

// Queues it on the current stream.
LOCKSTEP_EXPORT void lockstep_cuda_replay_graph(void* graph) {
  static_cast<Graph*>(graph)->replay();
}

LOCKSTEP_EXPORT void lockstep_cuda_free_graph(void* graph) {
  delete static_cast<Graph*>(graph);
}

LOCKSTEP_EXPORT bool lockstep_cuda_is_capturing() {
  return c10::cuda::currentStreamCaptureStatusMayInitCtx() !=
         c10::cuda::CaptureStatus::None;
}

// Calls function(context) on a thread of CUDA's when everything queued on the
// current stream is done; later work does not wait for it. The function must
// not call CUDA.
LOCKSTEP_EXPORT void lockstep_cuda_call_when_done(void (*function)(void*),
                                                  void* context) {
  static const CUDAStream side = c10::cuda::getStreamFromPool();
  cudaEvent_t done = nullptr;
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  C10_CUDA_CHECK(
      cudaEventRecord(done, c10::cuda::getCurrentCUDAStream().stream()));
  C10_CUDA_CHECK(cudaStreamWaitEvent(side.stream(), done, 0));
  C10_CUDA_CHECK(cudaEventDestroy(done));  // Once it is no longer needed.
  C10_CUDA_CHECK(cudaLaunchHostFunc(side.stream(), function, context));
}

// Timed events; while the stream is captured, nodes of the graph that record
// them in every replay.
LOCKSTEP_EXPORT void* lockstep_cuda_record_event() {
  cudaEvent_t event = nullptr;
  C10_CUDA_CHECK(cudaEventCreate(&event));
  C10_CUDA_CHECK(cudaEventRecordWithFlags(
      event, c10::cuda::getCurrentCUDAStream().stream(),
      lockstep_cuda_is_capturing() ? cudaEventRecordExternal
                                   : cudaEventRecordDefault));
  return event;
}

LOCKSTEP_EXPORT void lockstep_cuda_free_event(void* event) {
  cudaEventDestroy(static_cast<cudaEvent_t>(event));
}

LOCKSTEP_EXPORT bool lockstep_cuda_is_event_done(void* event) {
  const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(event));
  if (status != cudaErrorNotReady) C10_CUDA_CHECK(status);
  return status == cudaSuccess;
}

// Waits for both events.
LOCKSTEP_EXPORT double lockstep_cuda_seconds_between(void* from, void* to) {
  float milliseconds = 0;
  C10_CUDA_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(to)));
  C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds,
                                      static_cast<cudaEvent_t>(from),
                                      static_cast<cudaEvent_t>(to)));
  return milliseconds * 1e-3;
}

}  // extern "C"
