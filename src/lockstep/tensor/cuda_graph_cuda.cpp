// The CUDA side of cuda_graph.cpp; part of liblockstep_cuda.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <memory>

#include "lockstep/export.h"

namespace {

using at::cuda::CUDAGraph;
using c10::cuda::CUDAStream;

bool end_capture(CUDAGraph& graph) {
  try {
    graph.capture_end();
    return true;
  } catch (const c10::Error&) {
    cudaGetLastError();  // The next launch must not find it.
    return false;
  }
}

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
  auto graph = std::make_unique<CUDAGraph>();
  const CUDAStream before = c10::cuda::getCurrentCUDAStream();
  before.synchronize();
  c10::cuda::setCurrentCUDAStream(stream_to_capture());
  // Other threads copy batches and allocate memory during the capture.
  graph->capture_begin(shares_memory == nullptr
                           ? c10::MempoolId_t{0, 0}
                           : static_cast<CUDAGraph*>(shares_memory)->pool(),
                       cudaStreamCaptureModeThreadLocal);
  const bool is_complete = body(context);
  const bool is_ended = end_capture(*graph);
  c10::cuda::setCurrentCUDAStream(before);
  return is_complete && is_ended ? graph.release() : nullptr;
}

// Queues it on the current stream.
LOCKSTEP_EXPORT void lockstep_cuda_replay_graph(void* graph) {
  static_cast<CUDAGraph*>(graph)->replay();
}

LOCKSTEP_EXPORT void lockstep_cuda_free_graph(void* graph) {
  delete static_cast<CUDAGraph*>(graph);
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
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  C10_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
  cudaEvent_t event = nullptr;
  C10_CUDA_CHECK(cudaEventCreate(&event));
  C10_CUDA_CHECK(cudaEventRecordWithFlags(event, stream,
                                          status == cudaStreamCaptureStatusNone
                                              ? cudaEventRecordDefault
                                              : cudaEventRecordExternal));
  return event;
}

LOCKSTEP_EXPORT void lockstep_cuda_free_event(void* event) {
  cudaEventDestroy(static_cast<cudaEvent_t>(event));
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
