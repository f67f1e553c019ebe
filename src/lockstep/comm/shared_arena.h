// Memory that the ranks of one machine share, and whether they live.
//
// Each rank owns one region: a control page, room for two channels of
// collectives, and a heap of tensors. All ranks map all regions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/reduce_splits.h"
#include "lockstep/comm/shared_heap.h"
#include "lockstep/comm/shared_peers.h"
#include "lockstep/comm/shared_region.h"

namespace lockstep::comm {

// Sequences of collectives that do not wait for each other.
constexpr int kNumChannels = 2;
// Small values travel beside the header of a collective. Two headers: a rank
// writes the next one while others still read the last.
constexpr int kNumSlots = 2;
constexpr size_t kHeaderBytes = 128;
// Large ones are copied piece by piece: one is filled, one summed, one read.
constexpr int kNumPieces = 3;

struct ChannelSizes {
  size_t inline_bytes = 0;
  size_t piece_bytes = 0;
};
constexpr std::array<ChannelSizes, kNumChannels> kChannelSizes = {
    ChannelSizes{.inline_bytes = size_t{64} << 10,
                 .piece_bytes = size_t{1} << 20},
    ChannelSizes{.inline_bytes = size_t{4} << 10,
                 .piece_bytes = size_t{64} << 10}};

// Why no collective can succeed any more.
enum class FailureKind : int32_t { kNone, kPeer, kTimeout };
struct Failure {
  FailureKind kind = FailureKind::kNone;
  std::string text;  // "rank 1 ended or crashed; ..."
};
// Throws the PeerError or TimeoutError with that text.
[[noreturn]] void throw_failure(const Failure& failure);

// How far a rank has come in a channel, and how many sleep until it moves on.
struct alignas(64) StepCounter {
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> num_waiting;
};

// The first page of a region.
struct ControlPage {
  std::array<StepCounter, kNumChannels> steps;
  // On rank 0's page, for all: 0 none, 1 being written, 2 complete.
  std::atomic<uint32_t> failure_state;
  std::atomic<int32_t> failure_kind;
  std::array<char, 1024> failure_text;
  // Those that the rank may run on, one bit each.
  std::array<uint64_t, 16> processors;
};
static_assert(sizeof(ControlPage) <= 4096);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// The numbers of these ranks in a job of several machines, for messages.
struct JobRanks {
  std::vector<int> ranks = {};  // Empty: these ranks are the job.
  int size = 0;
};

struct SharedArenaConfig {
  int rank = 0;
  SharedRegion own = {};
  std::vector<Peer> peers = {};  // One per rank.
  JobRanks job = {};
};

// Bytes of a region without its heap.
size_t fixed_region_bytes();

// Thread-safe. Must outlive its channels and tensors: hold it by shared_ptr.
class SharedArena {
 public:
  // Maps all regions, with as many addresses for tensors as the system gives.
  // Throws IoError.
  explicit SharedArena(SharedArenaConfig config);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(regions_.size()); }
  // The number of a rank in the job.
  int job_rank(int rank) const {
    const auto place = static_cast<size_t>(rank);
    return place < job_.ranks.size() ? job_.ranks[place] : rank;
  }
  int job_size() const { return job_.ranks.empty() ? size() : job_.size; }

  // Bytes that a heap may reach into a region; each rank uses the smallest of
  // all ranks.
  size_t mapped_bytes() const { return mapped_bytes_; }
  void open_heap(size_t end);

  ControlPage& control(int rank) const;
  std::byte* slot(int rank, int channel, uint32_t number) const;
  std::byte* piece(int rank, int channel, uint32_t number) const;
  std::byte* at(int rank, size_t offset) const;

  // Memory of this rank's heap; null when there is not enough.
  std::byte* allocate(size_t bytes);
  void free(const std::byte* memory);
  // Where a tensor lies in this rank's heap; no value when it lies elsewhere.
  std::optional<size_t> offset_of(const void* memory, size_t bytes) const;
  // Where the block begins that allocate() gave and in which the tensor lies.
  std::optional<size_t> block_of(const void* memory, size_t bytes) const;

  // Blocks whose sums are needed in parts; freed ones are not among them.
  ReduceSplits& splits() { return splits_; }

  // All processors that some rank may run on; ranks may be bound to few each.
  int num_processors() const;

  // True when the process of that rank has ended or closed its arena.
  bool is_gone(int rank) const { return comm::is_gone(peers_[rank]); }

  // The first failure that a rank has recorded is the one of all ranks.
  std::optional<Failure> failure() const;
  Failure record_failure(const Failure& failure) const;

 private:
  void map_regions();
  void note_processors();

  int rank_;
  std::vector<Peer> peers_;
  JobRanks job_;
  std::vector<SharedRegion> regions_;
  size_t mapped_bytes_ = 0;
  mutable std::mutex mutex_;
  SharedHeap heap_{0, 0};
  size_t heap_begin_ = 0;
  size_t heap_end_ = 0;
  ReduceSplits splits_;
};

}  // namespace lockstep::comm
