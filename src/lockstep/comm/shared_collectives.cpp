#include "lockstep/comm/shared_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

// What a rank shows of a call.
struct CallHeader {
  SharedKind kind = SharedKind::kBarrier;
  Element element = Element::kUint8;
  Reduction reduction = Reduction::kSum;
  int32_t root = 0;
  uint64_t bytes = 0;
  // Where the tensor lies in the rank's heap; 0 when it lies elsewhere. Not
  // compared.
  uint64_t offset = 0;
  // Stands for the edges at which the tensor's sum is split; 0 when it is
  // whole. Not compared.
  uint64_t split = 0;
};
static_assert(sizeof(CallHeader) <= kHeaderBytes);

bool is_same_call(const CallHeader& a, const CallHeader& b) {
  return a.kind == b.kind && a.element == b.element &&
         a.reduction == b.reduction && a.root == b.root && a.bytes == b.bytes;
}

constexpr std::array kElementNames = {"float64",  "float32", "float16",
                                      "bfloat16", "int8",    "uint8",
                                      "int32",    "int64"};
constexpr std::array kReductionNames = {"sum", "product", "min", "max"};

std::string describe(const CallHeader& call, const SharedArena& arena) {
  const std::string size = base::bytes_text(static_cast<int64_t>(call.bytes));
  const char* element = kElementNames[static_cast<size_t>(call.element)];
  const char* reduction = kReductionNames[static_cast<size_t>(call.reduction)];
  switch (call.kind) {
    case SharedKind::kAllReduce:
      return fmt::format("all_reduce({}) of {} {}", reduction, size, element);
    case SharedKind::kReduceScatter:
      return fmt::format("reduce_scatter({}) of {} {}", reduction, size,
                         element);
    case SharedKind::kBroadcast:
      return fmt::format("broadcast of {} from rank {}", size,
                         arena.job_rank(call.root));
    case SharedKind::kAllGather: return fmt::format("all_gather of {}", size);
    case SharedKind::kBarrier: return "barrier";
  }
  return "an unknown collective";
}

CallHeader& header_at(std::byte* slot) {
  return *reinterpret_cast<CallHeader*>(slot);
}

// A range of bytes.
struct Range {
  size_t begin = 0;
  size_t bytes = 0;
};

// The part of `bytes` that a rank works on, in whole cache lines.
Range part_of(size_t bytes, int rank, int size) {
  constexpr size_t kLine = 64;
  const size_t lines = (bytes + kLine - 1) / kLine;
  const auto edge = [&](int at) {
    return std::min(bytes, lines * static_cast<size_t>(at) /
                               static_cast<size_t>(size) * kLine);
  };
  return {edge(rank), edge(rank + 1) - edge(rank)};
}

void copy_range(const std::byte* from, std::byte* to, const Range& range) {
  if (range.bytes > 0) {
    std::memcpy(to + range.begin, from + range.begin, range.bytes);
  }
}

// Bytes that every rank reads of every other: beyond some size parts are
// better than wholes.
constexpr size_t kMostReadBySmall = size_t{256} << 10;

}  // namespace

bool SharedCollectives::is_small(const SharedCall& call) const {
  return call.bytes <= channel_.sizes().inline_bytes &&
         call.bytes * channel_.size() <= kMostReadBySmall;
}

void SharedCollectives::begin(const SharedCall& call) {
  channel_.advance();
  std::byte* slot = channel_.slot(channel_.rank());
  CallHeader header{.kind = call.kind,
                    .element = call.element,
                    .reduction = call.reduction,
                    .root = call.root,
                    .bytes = call.bytes,
                    .offset = 0,
                    .split = 0};
  if (call.kind == SharedKind::kAllReduce) {
    header.offset =
        channel_.arena().offset_of(call.output, call.bytes).value_or(0);
    header.split =
        fingerprint(channel_.arena().splits().find(header.offset, call.bytes));
  }
  header_at(slot) = header;
  const bool is_read =
      call.kind != SharedKind::kBroadcast || call.root == channel_.rank();
  if (is_small(call) && is_read && call.bytes > 0) {
    std::memcpy(slot + kHeaderBytes,
                call.input != nullptr ? call.input : call.output, call.bytes);
  }
  channel_.arrive();
}

// Every rank compares with rank 0 and in rank order: all find the same
// difference.
void SharedCollectives::compare_calls(const SharedCall& call) {
  const CallHeader& of_rank0 = header_at(channel_.slot(0));
  const SharedArena& arena = channel_.arena();
  for (int rank = 0; rank < channel_.size(); ++rank) {
    channel_.wait_for(rank);
    const CallHeader& other = header_at(channel_.slot(rank));
    if (is_same_call(other, of_rank0)) continue;
    channel_.fail(
        {.kind = FailureKind::kPeer,
         .text = fmt::format(
             "rank {} called {} while rank {} called {}; every rank must call "
             "the same collectives in the same order",
             arena.job_rank(rank), describe(other, arena), arena.job_rank(0),
             describe(of_rank0, arena))});
  }
  LOCKSTEP_CHECK(of_rank0.bytes == call.bytes, "size of a collective");
}

void SharedCollectives::finish(const SharedCall& call, const WaitConfig& wait) {
  channel_.start_waiting(wait);
  compare_calls(call);
  if (call.bytes == 0) return;
  if (is_small(call)) return finish_small(call);
  switch (call.kind) {
    case SharedKind::kAllReduce:
      return is_direct(call) ? reduce_directly(call) : reduce_by_pieces(call);
    case SharedKind::kBroadcast: return broadcast_by_pieces(call);
    case SharedKind::kAllGather: return gather_by_pieces(call);
    case SharedKind::kReduceScatter: return scatter_by_pieces(call);
    case SharedKind::kBarrier: return;
  }
}

// Every rank reads what it needs beside the headers. Nobody waits for the
// readers: the slot is written again two calls later.
void SharedCollectives::finish_small(const SharedCall& call) {
  const auto values = [&](int rank) {
    return channel_.slot(rank) + kHeaderBytes;
  };
  const size_t part = call.bytes / channel_.size();
  switch (call.kind) {
    case SharedKind::kAllReduce:
    case SharedKind::kReduceScatter: {
      const bool is_scatter = call.kind == SharedKind::kReduceScatter;
      const Range range = is_scatter ? Range{part * channel_.rank(), part}
                                     : Range{0, call.bytes};
      std::vector<const std::byte*> sources;
      for (int rank = 0; rank < channel_.size(); ++rank) {
        sources.push_back(values(rank) + range.begin);
      }
      reduce_in_ring_order(
          {.element = call.element,
           .reduction = call.reduction,
           .chunk_bytes = ring_chunk_bytes(
               call.bytes, element_bytes(call.element), channel_.size()),
           .offset = range.begin,
           .bytes = range.bytes,
           .sources = sources,
           .targets = {&call.output, 1}});
      return;
    }
    case SharedKind::kBroadcast:
      if (call.root != channel_.rank()) {
        std::memcpy(call.output, values(call.root), call.bytes);
      }
      return;
    case SharedKind::kAllGather:
      for (int rank = 0; rank < channel_.size(); ++rank) {
        std::memcpy(call.outputs[rank], values(rank), call.bytes);
      }
      return;
    case SharedKind::kBarrier: return;
  }
}

bool SharedCollectives::is_direct(const SharedCall&) const {
  for (int rank = 0; rank < channel_.size(); ++rank) {
    if (header_at(channel_.slot(rank)).offset == 0) return false;
  }
  return true;
}

// Empty unless all ranks split the tensor alike.
ReduceEdges SharedCollectives::agreed_edges(const SharedCall& call) const {
  const CallHeader& own = header_at(channel_.slot(channel_.rank()));
  for (int rank = 0; rank < channel_.size(); ++rank) {
    if (header_at(channel_.slot(rank)).split != own.split) return {};
  }
  return channel_.arena().splits().find(own.offset, call.bytes);
}

// All tensors lie in the arena: each rank sums its part of all of them, and
// writes it to all, or to its own alone where no other needs it.
void SharedCollectives::reduce_directly(const SharedCall& call) {
  const int self = channel_.rank();
  const ReduceEdges edges = agreed_edges(call);
  const Range part = edges.empty()
                         ? part_of(call.bytes, self, channel_.size())
                         : Range{edges[self], edges[self + 1] - edges[self]};
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;
  for (int rank = 0; rank < channel_.size(); ++rank) {
    const uint64_t offset = header_at(channel_.slot(rank)).offset;
    std::byte* const place = channel_.arena().at(rank, offset) + part.begin;
    sources.push_back(place);
    if (edges.empty() || rank == self) targets.push_back(place);
  }
  reduce_in_ring_order(
      {.element = call.element,
       .reduction = call.reduction,
       .chunk_bytes = ring_chunk_bytes(call.bytes, element_bytes(call.element),
                                       channel_.size()),
       .offset = part.begin,
       .bytes = part.bytes,
       .sources = sources,
       .targets = targets});
  channel_.arrive();
  channel_.wait_for_all();
}

// A piece at a time: each rank stages what the others sum, sums its part from
// its own tensor and the others' staging, and leaves the sum in its staging for
// the others to copy. Between two steps piece k is copied out, k + 1 summed and
// k + 2 staged, which is why there are three.
void SharedCollectives::reduce_by_pieces(const SharedCall& call) {
  const size_t piece_bytes = channel_.sizes().piece_bytes;
  const size_t num_pieces = (call.bytes + piece_bytes - 1) / piece_bytes;
  const int self = channel_.rank();
  const size_t chunk_bytes = ring_chunk_bytes(
      call.bytes, element_bytes(call.element), channel_.size());
  const auto length = [&](size_t piece) {
    return std::min(piece_bytes, call.bytes - piece * piece_bytes);
  };
  const auto tensor = [&](size_t piece) {
    return call.output + piece * piece_bytes;
  };
  const auto staging = [&](int rank, size_t piece) {
    return channel_.piece(rank, static_cast<uint32_t>(piece));
  };
  const auto stage = [&](size_t piece) {
    const Range own = part_of(length(piece), self, channel_.size());
    const size_t end = own.begin + own.bytes;
    copy_range(tensor(piece), staging(self, piece), {0, own.begin});
    copy_range(tensor(piece), staging(self, piece), {end, length(piece) - end});
  };
  const auto sum = [&](size_t piece) {
    const Range own = part_of(length(piece), self, channel_.size());
    std::vector<const std::byte*> sources;
    for (int rank = 0; rank < channel_.size(); ++rank) {
      sources.push_back((rank == self ? tensor(piece) : staging(rank, piece)) +
                        own.begin);
    }
    const std::array<std::byte*, 2> targets = {
        tensor(piece) + own.begin, staging(self, piece) + own.begin};
    reduce_in_ring_order({.element = call.element,
                          .reduction = call.reduction,
                          .chunk_bytes = chunk_bytes,
                          .offset = piece * piece_bytes + own.begin,
                          .bytes = own.bytes,
                          .sources = sources,
                          .targets = targets});
  };
  const auto copy_out = [&](size_t piece) {
    for (int rank = 0; rank < channel_.size(); ++rank) {
      if (rank == self) continue;
      copy_range(staging(rank, piece), tensor(piece),
                 part_of(length(piece), rank, channel_.size()));
    }
  };
  stage(0);
  for (size_t piece = 0; piece < num_pieces; ++piece) {
    channel_.arrive();
    channel_.wait_for_all();
    if (piece > 0) copy_out(piece - 1);
    sum(piece);
    if (piece + 1 < num_pieces) stage(piece + 1);
  }
  channel_.arrive();
  channel_.wait_for_all();
  copy_out(num_pieces - 1);
}

// The root fills a piece while the others copy the one before.
void SharedCollectives::broadcast_by_pieces(const SharedCall& call) {
  const size_t piece_bytes = channel_.sizes().piece_bytes;
  uint32_t piece = 0;
  for (size_t at = 0; at < call.bytes; at += piece_bytes, ++piece) {
    const size_t length = std::min(piece_bytes, call.bytes - at);
    std::byte* staging = channel_.piece(call.root, piece);
    const bool is_root = call.root == channel_.rank();
    if (is_root) std::memcpy(staging, call.output + at, length);
    channel_.arrive();
    channel_.wait_for_all();
    if (!is_root) std::memcpy(call.output + at, staging, length);
  }
}

void SharedCollectives::gather_by_pieces(const SharedCall& call) {
  const size_t piece_bytes = channel_.sizes().piece_bytes;
  uint32_t piece = 0;
  for (size_t at = 0; at < call.bytes; at += piece_bytes, ++piece) {
    const size_t length = std::min(piece_bytes, call.bytes - at);
    std::memcpy(channel_.piece(channel_.rank(), piece), call.input + at,
                length);
    channel_.arrive();
    channel_.wait_for_all();
    for (int rank = 0; rank < channel_.size(); ++rank) {
      std::memcpy(call.outputs[rank] + at, channel_.piece(rank, piece), length);
    }
  }
}

// A piece holds a stretch of the part of every rank.
void SharedCollectives::scatter_by_pieces(const SharedCall& call) {
  constexpr size_t kLine = 64;
  const int self = channel_.rank();
  const auto size = static_cast<size_t>(channel_.size());
  const size_t part = call.bytes / size;
  const size_t stretch =
      std::max(channel_.sizes().piece_bytes / size / kLine, size_t{1}) * kLine;
  const size_t chunk_bytes =
      ring_chunk_bytes(call.bytes, element_bytes(call.element), size);
  uint32_t piece = 0;
  for (size_t at = 0; at < part; at += stretch, ++piece) {
    const size_t length = std::min(stretch, part - at);
    std::vector<const std::byte*> sources;
    for (size_t rank = 0; rank < size; ++rank) {
      std::memcpy(channel_.piece(self, piece) + rank * stretch,
                  call.input + rank * part + at, length);
      sources.push_back(channel_.piece(static_cast<int>(rank), piece) +
                        self * stretch);
    }
    channel_.arrive();
    channel_.wait_for_all();
    std::byte* const target = call.output + at;
    reduce_in_ring_order({.element = call.element,
                          .reduction = call.reduction,
                          .chunk_bytes = chunk_bytes,
                          .offset = self * part + at,
                          .bytes = length,
                          .sources = sources,
                          .targets = {&target, 1}});
  }
}

}  // namespace lockstep::comm
