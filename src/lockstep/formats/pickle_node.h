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

// An element type of numpy: '<' and "f4".
struct NumpyType {
  char order = '|';
  std::string name;
};

// An array of numpy that has no contents yet.
struct NumpyArray {};

struct Node {
  std::variant<std::monostate, bool, int64_t, BigInt, double, std::string_view,
               Bytes, Refs, Tuple, Dict, Global, StorageRef, TensorRecord,
               NumpyType, NumpyArray, Opaque>
      data;

  template <typename T>
  T* get_if() {
    return std::get_if<T>(&data);
  }
};

// How many bytes the objects of one pickle may take. Objects refer to others
// and calls copy them, so that a small pickle could ask for any amount.
class Budget {
 public:
  explicit Budget(size_t pickle_bytes)
      : left_((size_t{64} << 20) + 200 * pickle_bytes) {}

  void spend(size_t bytes) {
    if (bytes > left_) {
      throw FormatError(
          "pickle: its objects take more than 64 MiB and 200 times its bytes");
    }
    left_ -= bytes;
  }

 private:
  size_t left_;
};

class Arena {
 public:
  explicit Arena(Budget& budget) : budget_(budget) {}

  template <typename T>
  Ref make(T data) {
    budget_.spend(sizeof(Node) + extra_bytes(data));
    return &nodes_.emplace_back(Node{std::move(data)});
  }

  // For what an object refers to besides its node.
  void spend(size_t bytes) { budget_.spend(bytes); }

 private:
  template <typename T>
  static size_t extra_bytes(const T&) {
    return 0;
  }
  static size_t extra_bytes(const BigInt& big) { return big.decimal.size(); }
  static size_t extra_bytes(const Bytes& bytes) { return bytes.data.size(); }
  static size_t extra_bytes(const Global& global) { return global.name.size(); }
  static size_t extra_bytes(const Opaque& opaque) {
    return opaque.class_name.size();
  }
  static size_t extra_bytes(const NumpyType& type) { return type.name.size(); }
  static size_t extra_bytes(const Refs& refs) {
    return refs.size() * sizeof(Ref);
  }
  static size_t extra_bytes(const Tuple& tuple) {
    return extra_bytes(tuple.items);
  }
  static size_t extra_bytes(const Dict& dict) {
    return dict.size() * sizeof(dict[0]);
  }
  static size_t extra_bytes(const TensorRecord& tensor) {
    return 2 * tensor.shape.size() * sizeof(int64_t);
  }

  Budget& budget_;
  std::deque<Node> nodes_;
};

// What calling `callable` with `arguments` gives: for known functions their
// result, for all others an Opaque. Throws FormatError when a known function
// has impossible arguments.
Ref call(Arena& arena, Node& callable, const Refs& arguments);

// Arrays and element types of numpy: what the calls that make them give.
Ref make_numpy_array(Arena& arena, const Refs& arguments);
Ref make_numpy_type(Arena& arena, const Refs& arguments);

// Gives an object its state. Those of numpy take it; all others that are kept
// have none (attributes such as the _metadata of a state dict go).
void set_state(Arena& arena, Node& object, Node& state);

// The storage that a persistent id ('storage', type, key, place, count, ...)
// names.
Ref load_storage(Arena& arena, Node& id, const FindStorage& find_storage);

}  // namespace lockstep::pickle
