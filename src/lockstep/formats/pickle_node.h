// The objects of a pickle while it is read.
//
// A pickle builds its objects piece by piece and refers to them again, also
// from inside themselves. So they are nodes that point to each other, all owned
// by one arena; only the finished result becomes a tree of values.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/formats/pickle_reader.h"

namespace lockstep::pickle {

struct Node;
using Ref = Node*;
using Refs = std::vector<Ref>;

struct Tuple {
  Refs items;
};

using Dict = std::vector<std::pair<Ref, Ref>>;

// A class or function by its name. It is only ever compared with known names.
struct Global {
  std::string name;  // "torch._utils._rebuild_tensor_v2"
};

struct StorageRef {
  std::shared_ptr<const ByteStorage> storage;
  const DTypeInfo* dtype = nullptr;  // null: untyped, counted in bytes
  int64_t num_bytes = 0;
};

struct Node {
  std::variant<std::monostate, bool, int64_t, BigInt, double, std::string_view,
               Bytes, Refs, Tuple, Dict, Global, StorageRef, TensorRecord,
               Opaque>
      data;

  template <typename T>
  T* get_if() {
    return std::get_if<T>(&data);
  }
};

class Arena {
 public:
  template <typename T>
  Ref make(T data) {
    if (nodes_.size() >= kMaxNodes) {
      throw FormatError("pickle: more than 10 million objects");
    }
    return &nodes_.emplace_back(Node{std::move(data)});
  }

 private:
  static constexpr size_t kMaxNodes = 10'000'000;

  std::deque<Node> nodes_;
};

// What calling `callable` with `arguments` gives: for known functions their
// result, for all others an Opaque. Throws FormatError when a known function
// has impossible arguments.
Ref call(Arena& arena, Node& callable, const Refs& arguments);

// The storage that a persistent id ('storage', type, key, place, count, ...)
// names.
Ref load_storage(Arena& arena, Node& id, const FindStorage& find_storage);

}  // namespace lockstep::pickle
