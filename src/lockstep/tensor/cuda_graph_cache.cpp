#include "lockstep/tensor/cuda_graph_cache.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lockstep/tensor/cuda_graph.h"

namespace lockstep::tensor {

struct CudaGraphCache::Entry {
  enum class State { kNew, kSeen, kRecorded, kCalled };

  std::vector<int64_t> sizes;
  at::TensorOptions options;
  State state = State::kNew;
  // Input and results lie where the graph reads and writes them.
  at::Tensor input = {};
  std::vector<at::Tensor> results = {};
  std::unique_ptr<CudaGraph> graph = {};
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
  const CudaGraph* shares_memory = nullptr;
  for (const auto& other : entries_) {
    if (other->graph) shares_memory = other->graph.get();
  }
  entry.input = input.clone();
  entry.graph =
      CudaGraph::capture([&] { entry.results = function_(entry.input); },
                         shares_memory)
          .graph;
  entry.state = entry.graph ? Entry::State::kRecorded : Entry::State::kCalled;
  if (!entry.graph) {
    entry.input.reset();
    entry.results.clear();
  }
}

std::vector<at::Tensor> CudaGraphCache::operator()(const at::Tensor& input) {
  if (!input.is_cuda() || at::GradMode::is_enabled() ||
      CudaGraph::is_capturing()) {
    return function_(input);
  }
  Entry& entry = entry_of(input);
  if (entry.state == Entry::State::kSeen &&
      num_recorded() < config_.max_recorded) {
    record(entry, input);
  }
  if (entry.state == Entry::State::kNew) entry.state = Entry::State::kSeen;
  if (entry.state != Entry::State::kRecorded) return function_(input);
  entry.input.copy_(input);
  entry.graph->replay();
  std::vector<at::Tensor> results;
  for (const at::Tensor& result : entry.results) {
    results.push_back(result.defined() ? result.clone() : at::Tensor());
  }
  return results;
}

}  // namespace lockstep::tensor
