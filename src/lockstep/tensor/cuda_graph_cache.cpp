#include "lockstep/tensor/cuda_graph_cache.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lockstep/tensor/cuda_library.h"

namespace lockstep::tensor {
namespace {

using Body = void(void*);

struct FreeGraph {
  void operator()(void* graph) const {
    cuda_function<void(void*)>("lockstep_cuda_free_graph")(graph);
  }
};
using Graph = std::unique_ptr<void, FreeGraph>;

// Null when something in the body cannot be captured.
Graph record_graph(const std::function<void()>& body, void* shares_memory) {
  const auto call = [](void* function) {
    (*static_cast<const std::function<void()>*>(function))();
  };
  return Graph(
      cuda_function<void*(Body*, void*, void*)>("lockstep_cuda_record_graph")(
          call, const_cast<std::function<void()>*>(&body), shares_memory));
}

}  // namespace

struct CudaGraphCache::Entry {
  enum class State { kNew, kSeen, kRecorded, kCalled };

  std::vector<int64_t> sizes;
  at::TensorOptions options;
  State state = State::kNew;
  // Input and results lie where the graph reads and writes them.
  at::Tensor input = {};
  std::vector<at::Tensor> results = {};
  Graph graph = {};
};

CudaGraphCache::CudaGraphCache(Function function, const ReplayConfig& config)
    : function_(std::move(function)), config_(config) {}

CudaGraphCache::~CudaGraphCache() = default;

size_t CudaGraphCache::num_recorded() const {
  return static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
        return entry->state == Entry::State::kRecorded;
      }));
}

CudaGraphCache::Entry& CudaGraphCache::entry_of(const at::Tensor& input) {
  for (const auto& entry : entries_) {
    if (input.sizes() == entry->sizes &&
        input.scalar_type() == entry->options.dtype().toScalarType() &&
        input.device() == entry->options.device()) {
      return *entry;
    }
  }
  entries_.push_back(std::make_unique<Entry>(
      Entry{.sizes = input.sizes().vec(), .options = input.options()}));
  return *entries_.back();
}

void CudaGraphCache::record(Entry& entry, const at::Tensor& input) {
  void* shares_memory = nullptr;
  for (const auto& other : entries_) {
    if (other->graph) shares_memory = other->graph.get();
  }
  entry.input = input.clone();
  entry.graph = record_graph([&] { entry.results = function_(entry.input); },
                             shares_memory);
  entry.state = entry.graph ? Entry::State::kRecorded : Entry::State::kCalled;
  if (!entry.graph) {
    entry.input.reset();
    entry.results.clear();
  }
}

std::vector<at::Tensor> CudaGraphCache::operator()(const at::Tensor& input) {
  if (!input.is_cuda() || at::GradMode::is_enabled()) return function_(input);
  Entry& entry = entry_of(input);
  if (entry.state == Entry::State::kSeen &&
      num_recorded() < config_.max_recorded) {
    record(entry, input);
  }
  if (entry.state == Entry::State::kNew) entry.state = Entry::State::kSeen;
  if (entry.state != Entry::State::kRecorded) return function_(input);
  entry.input.copy_(input);
  cuda_function<void(void*)>("lockstep_cuda_replay_graph")(entry.graph.get());
  std::vector<at::Tensor> results;
  for (const at::Tensor& result : entry.results) {
    results.push_back(result.defined() ? result.clone() : at::Tensor());
  }
  return results;
}

}  // namespace lockstep::tensor
