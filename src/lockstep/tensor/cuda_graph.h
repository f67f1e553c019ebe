// A CUDA graph: kernel launches that were captured once and are replayed.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace lockstep::tensor {

class CudaGraph {
 public:
  // The capture's outcome: a graph, or why there is none.
  struct Capture;

  // Captures what the body launches on the current stream, and on a side stream
  // if that is the default stream, which cannot be captured. Nothing runs until
  // replay(). Memory that the body allocates belongs to the graph, and stays
  // the same in every replay; graphs that share memory must not need each
  // other's temporaries. An exception of the body ends the capture.
  static Capture capture(const std::function<void()>& body,
                         const CudaGraph* shares_memory = nullptr);

  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  // Queues it on the current stream.
  void replay() const;

  // The current stream is captured, by whomever.
  static bool is_capturing();

 private:
  explicit CudaGraph(void* graph);

  void* graph_;  // at::cuda::CUDAGraph
};

struct CudaGraph::Capture {
  std::unique_ptr<CudaGraph> graph = {};
  std::string problem = {};
  bool is_out_of_memory = false;
};

}  // namespace lockstep::tensor
