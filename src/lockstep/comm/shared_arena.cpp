#include "lockstep/comm/shared_arena.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "lockstep/base/process_memory.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

constexpr size_t kControlBytes = 4096;
// Addresses cost nothing; memory is taken when a tensor is made.
constexpr size_t kMostMapped = size_t{64} << 30;

constexpr uint32_t kFailureBeingWritten = 1;
constexpr uint32_t kFailureComplete = 2;

constexpr size_t slot_bytes(int channel) {
  return kHeaderBytes + kChannelSizes[channel].inline_bytes;
}

constexpr size_t channel_bytes(int channel) {
  return kNumSlots * slot_bytes(channel) +
         kNumPieces * kChannelSizes[channel].piece_bytes;
}

constexpr size_t channel_begin(int channel) {
  size_t begin = kControlBytes;
  for (int earlier = 0; earlier < channel; ++earlier) {
    begin += channel_bytes(earlier);
  }
  return begin;
}

// Under `ulimit -v` the program needs addresses too: a quarter of what is left
// is enough for the exchange.
size_t addresses_to_take(size_t num_regions) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return kMostMapped;
  }
  const auto in_use = static_cast<size_t>(base::process_memory().mapped_bytes);
  const size_t left = limit.rlim_cur > in_use ? limit.rlim_cur - in_use : 0;
  return std::min(kMostMapped, left / 4 / num_regions);
}

}  // namespace

void throw_failure(const Failure& failure) {
  if (failure.kind == FailureKind::kTimeout) throw TimeoutError(failure.text);
  throw PeerError(failure.text);
}

size_t fixed_region_bytes() {
  constexpr size_t kPage = 4096;
  const size_t bytes = channel_begin(kNumChannels);
  return (bytes + kPage - 1) / kPage * kPage;
}

SharedArena::SharedArena(SharedArenaConfig config)
    : rank_(config.rank),
      peers_(std::move(config.peers)),
      job_(std::move(config.job)) {
  const auto num_ranks = static_cast<int>(peers_.size());
  for (int rank = 0; rank < num_ranks; ++rank) {
    regions_.push_back(
        rank == rank_ ? std::move(config.own)
                      : SharedRegion::attach(std::move(peers_[rank].memory),
                                             fixed_region_bytes()));
  }
  map_regions();
  note_processors();
  heap_begin_ = fixed_region_bytes();
}

void SharedArena::map_regions() {
  constexpr size_t kHugePage = size_t{2} << 20;
  const auto map_all = [&](size_t bytes) {
    return std::all_of(regions_.begin(), regions_.end(),
                       [&](SharedRegion& region) { return region.map(bytes); });
  };
  size_t bytes = addresses_to_take(regions_.size()) / kHugePage * kHugePage;
  for (; bytes > fixed_region_bytes(); bytes /= 2) {
    if (map_all(bytes)) break;
  }
  if (bytes <= fixed_region_bytes()) {
    bytes = fixed_region_bytes();
    if (!map_all(bytes)) {
      throw IoError("no addresses are left for shared memory: " +
                    base::errno_text());
    }
  }
  mapped_bytes_ = bytes;
}

void SharedArena::note_processors() {
  static_assert(sizeof(cpu_set_t) == sizeof(ControlPage::processors));
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::memcpy(&control(rank_).processors, &allowed, sizeof(allowed));
}

int SharedArena::num_processors() const {
  int count = 0;
  for (size_t word = 0; word < control(0).processors.size(); ++word) {
    uint64_t of_all = 0;
    for (int rank = 0; rank < size(); ++rank) {
      of_all |= control(rank).processors[word];
    }
    count += std::popcount(of_all);
  }
  return count;
}

void SharedArena::open_heap(size_t end) {
  const std::lock_guard lock(mutex_);
  heap_end_ = std::max(heap_begin_, std::min(end, mapped_bytes_));
  heap_ = SharedHeap(heap_begin_, heap_end_);
}

std::byte* SharedArena::at(int rank, size_t offset) const {
  return regions_[rank].data() + offset;
}

ControlPage& SharedArena::control(int rank) const {
  return *reinterpret_cast<ControlPage*>(at(rank, 0));
}

std::byte* SharedArena::slot(int rank, int channel, uint32_t number) const {
  return at(rank,
            channel_begin(channel) + number % kNumSlots * slot_bytes(channel));
}

std::byte* SharedArena::piece(int rank, int channel, uint32_t number) const {
  return at(rank, channel_begin(channel) + kNumSlots * slot_bytes(channel) +
                      number % kNumPieces * kChannelSizes[channel].piece_bytes);
}

std::byte* SharedArena::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto offset = heap_.allocate(bytes);
  if (!offset) return nullptr;
  if (!regions_[rank_].take_memory(*offset, bytes)) {
    heap_.free(*offset);
    return nullptr;
  }
  return at(rank_, *offset);
}

void SharedArena::free(const std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto offset = static_cast<size_t>(memory - at(rank_, 0));
  splits_.erase(offset);
  regions_[rank_].return_memory(offset, heap_.free(offset));
}

std::optional<size_t> SharedArena::offset_of(const void* memory,
                                             size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const auto begin = reinterpret_cast<uintptr_t>(at(rank_, 0));
  if (address < begin + heap_begin_ || address + bytes > begin + heap_end_) {
    return std::nullopt;
  }
  return address - begin;
}

std::optional<size_t> SharedArena::block_of(const void* memory,
                                            size_t bytes) const {
  const auto offset = offset_of(memory, bytes);
  if (!offset) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return heap_.block_of(*offset);
}

std::optional<Failure> SharedArena::failure() const {
  const ControlPage& page = control(0);
  if (page.failure_state.load(std::memory_order_acquire) != kFailureComplete) {
    return std::nullopt;
  }
  const auto& text = page.failure_text;
  return Failure{.kind = static_cast<FailureKind>(page.failure_kind.load()),
                 .text = {text.data(), strnlen(text.data(), text.size())}};
}

Failure SharedArena::record_failure(const Failure& failure) const {
  constexpr std::chrono::milliseconds kPause{1};
  constexpr int kNumPauses = 1000;
  ControlPage& page = control(0);
  uint32_t expected = 0;
  if (page.failure_state.compare_exchange_strong(expected,
                                                 kFailureBeingWritten)) {
    page.failure_kind = static_cast<int32_t>(failure.kind);
    const size_t length =
        std::min(failure.text.size(), page.failure_text.size() - 1);
    std::memcpy(page.failure_text.data(), failure.text.data(), length);
    page.failure_state.store(kFailureComplete, std::memory_order_release);
    return failure;
  }
  // Whoever was first writes a line of text, unless it is killed right now.
  for (int pause = 0; pause < kNumPauses; ++pause) {
    if (auto first = this->failure()) return *first;
    std::this_thread::sleep_for(kPause);
  }
  return failure;
}

}  // namespace lockstep::comm
