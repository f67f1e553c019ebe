#include "lockstep/tensor/cuda_graph.h"

#include <c10/util/Exception.h>

#include "lockstep/tensor/cuda_library.h"

namespace lockstep::tensor {
namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// The body's exception must not pass through the library's C function.
struct Body {
  const std::function<void()>& function;
  std::string problem = {};
  bool is_out_of_memory = false;

  static bool call(void* body) {
    auto& self = *static_cast<Body*>(body);
    try {
      self.function();
      return true;
    } catch (const c10::OutOfMemoryError& error) {
      self.problem = first_line(error.what_without_backtrace());
      self.is_out_of_memory = true;
    } catch (const c10::Error& error) {
      self.problem = first_line(error.what_without_backtrace());
    } catch (const std::exception& error) {
      self.problem = first_line(error.what());
    }
    return false;
  }
};

}  // namespace

CudaGraph::CudaGraph(void* graph) : graph_(graph) {}

CudaGraph::~CudaGraph() {
  cuda_function<void(void*)>("lockstep_cuda_free_graph")(graph_);
}

CudaGraph::Capture CudaGraph::capture(const std::function<void()>& body,
                                      const CudaGraph* shares_memory) {
  Body called{body};
  void* graph = cuda_function<void*(bool (*)(void*), void*, void*)>(
      "lockstep_cuda_capture_graph")(
      &Body::call, &called,
      shares_memory == nullptr ? nullptr : shares_memory->graph_);
  if (graph != nullptr) {
    return {.graph = std::unique_ptr<CudaGraph>(new CudaGraph(graph))};
  }
  return {.problem = called.problem.empty() ? "CUDA cannot capture it"
                                            : called.problem,
          .is_out_of_memory = called.is_out_of_memory};
}

bool CudaGraph::is_capturing() {
  return cuda_function<bool()>("lockstep_cuda_is_capturing")();
}

void CudaGraph::replay() const {
  cuda_function<void(void*)>("lockstep_cuda_replay_graph")(graph_);
}

}  // namespace lockstep::tensor
