// The objects of a pickle while it is read.
//
// A pickle builds its objects piece by piece and refers to them again, also
// from inside themselves. So they are nodes that point to each other, all owned
// by one arena; only the finished result becomes a tree of values.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/formats/pickle_reader.h"
#include "lockstep/value.h"

namespace lockstep::formats::pickle {

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

// Large alternatives are boxed: a pickle has many more numbers than tensors.
struct Node {
  template <typename T>
  using Stored = std::conditional_t<(sizeof(T) > sizeof(Refs)), Boxed<T>, T>;

  template <typename T>
  explicit Node(T value) : data(Stored<T>(std::move(value))) {}

  template <typename T>
  T* get_if() {
    auto* stored = std::get_if<Stored<T>>(&data);
    if constexpr (std::same_as<Stored<T>, T>) {
      return stored;
    } else {
      return stored == nullptr ? nullptr : &**stored;
    }
  }

  template <typename T>
  void assign(T value) {
    data = Stored<T>(std::move(value));
  }

  std::variant<std::monostate, bool, int64_t, Stored<BigInt>, double,
               std::string_view, Stored<Bytes>, Refs, Tuple, Dict,
               Stored<Global>, Stored<StorageRef>, Stored<TensorRecord>,
               Stored<NumpyType>, NumpyArray, Stored<Opaque>>
      data;
};
static_assert(sizeof(Node) <= 32);

// How many bytes the objects of one pickle may take. Objects refer to others
// and calls copy them, so that a small pickle could ask for any amount.
class Budget {
 public:
  explicit Budget(uint64_t file_bytes)
      : left_(kAlways + kTimesTheFile * file_bytes) {}

  void spend(uint64_t bytes) {
    if (bytes > left_) {
      throw FormatError(
          "pickle: its objects take more than 64 MiB and 16 times its bytes");
    }
    left_ -= bytes;
  }

 private:
  static constexpr uint64_t kAlways = uint64_t{64} << 20;
  static constexpr uint64_t kTimesTheFile = 16;

  uint64_t left_;
};

// Overhead of one allocation.
constexpr size_t kAllocationBytes = 16;

class Arena {
 public:
  explicit Arena(Budget& budget) : budget_(budget) {}

  template <typename T>
  Ref make(T data) {
    constexpr bool is_boxed = !std::same_as<Node::Stored<T>, T>;
    budget_.spend(sizeof(Node) + extra_bytes(data) +
                  (is_boxed ? sizeof(T) + kAllocationBytes : 0));
    return &nodes_.emplace_back(std::move(data));
  }

  // One node for each of None, True, False and small numbers.
  Ref make(std::monostate) { return shared(0, std::monostate()); }
  Ref make(bool value) { return shared(value ? 1 : 2, value); }
  Ref make(int64_t number) {
    if (number < 0 || number >= kSharedNumbers) return make_own(number);
    return shared(3 + static_cast<size_t>(number), number);
  }

  // For what an object refers to besides its node.
  void spend(uint64_t bytes) { budget_.spend(bytes); }

  // Counts a tensor that is copied when it is used, unlike all others. Throws
  // FormatError when such tensors have more bytes than their storages could
  // need.
  void count_copied(const TensorRecord& tensor, uint64_t storage_bytes);

 private:
  static constexpr int64_t kSharedNumbers = 256;

  template <typename T>
  Ref make_own(T data) {
    budget_.spend(sizeof(Node));
    return &nodes_.emplace_back(std::move(data));
  }

  template <typename T>
  Ref shared(size_t place, T data) {
    Ref& node = shared_[place];
    if (node == nullptr) node = make_own(data);
    return node;
  }

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
    return refs.empty() ? 0 : refs.size() * sizeof(Ref) + kAllocationBytes;
  }
  static size_t extra_bytes(const Tuple& tuple) {
    return extra_bytes(tuple.items);
  }
  static size_t extra_bytes(const Dict& dict) {
    return dict.size() * sizeof(dict[0]);
  }
  static size_t extra_bytes(const TensorRecord& tensor) {
    return 2 * (tensor.shape.size() * sizeof(int64_t) + kAllocationBytes);
  }

  Budget& budget_;
  std::deque<Node> nodes_;
  std::array<Ref, 3 + kSharedNumbers> shared_{};
  std::unordered_set<const ByteStorage*> copied_storages_;
  uint64_t copied_storage_bytes_ = 0;
  uint64_t copied_bytes_ = 0;
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

}  // namespace lockstep::formats::pickle
