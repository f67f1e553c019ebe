// What a checkpoint holds: a tree of dicts, lists, numbers, texts and tensors.
//
// BasicValue<Tensor> is the tree, BasicView<Tensor> a position in it with its
// path, for reading with errors that name the path:
//
//   Tree value;
//   value["epoch"] = 3;
//   value["model"]["weight"] = tensor;
//   value.at("epoch").as_int();
//   value.at("model").at("bias");   // FormatError: 'model.bias' is missing
//
// Tree of checkpoint.h is the one with torch tensors.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/export.h"

namespace lockstep {

// An integer that does not fit into int64_t.
struct BigInt {
  std::string decimal;  // "-18446744073709551616"
  bool operator==(const BigInt&) const = default;
};

struct Bytes {
  std::string data;
  bool operator==(const Bytes&) const = default;
};

// Stands for an object of a class that is not read. It cannot be written.
struct Opaque {
  std::string class_name;  // "argparse.Namespace"
  bool operator==(const Opaque&) const = default;
};

// A heap value with value semantics, for large alternatives of a variant. Never
// empty, unless moved from.
template <typename T>
class Boxed {
 public:
  explicit(false) Boxed(T value)
      : value_(std::make_unique<T>(std::move(value))) {}
  Boxed(const Boxed& other) : value_(std::make_unique<T>(*other)) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(const Boxed& other) {
    if (this != &other) value_ = std::make_unique<T>(*other);
    return *this;
  }
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }

 private:
  std::unique_ptr<T> value_;
};

template <typename T, typename... Others>
concept OneOf = (std::same_as<T, Others> || ...);

template <typename Tensor>
class BasicView;

template <typename Tensor>
class BasicValue {
 public:
  using List = std::vector<BasicValue>;
  struct Tuple {
    List items;
  };
  struct Entry;
  using Dict = std::vector<Entry>;  // in the order of insertion, no key twice
  // Files may hold millions of numbers; each takes no more memory than a
  // string.
  using Slot = std::conditional_t<(sizeof(Tensor) > sizeof(std::string)),
                                  Boxed<Tensor>, Tensor>;
  template <typename T>
  using Stored = std::conditional_t<std::same_as<T, Tensor>, Slot, T>;
  using Data =
      std::variant<std::monostate, bool, int64_t, BigInt, double, std::string,
                   Bytes, Slot, List, Tuple, Dict, Opaque>;

  BasicValue() = default;
  template <typename T>
    requires OneOf<T, std::monostate, bool, int64_t, BigInt, double,
                   std::string, Bytes, Tensor, List, Tuple, Dict, Opaque>
  explicit(false) BasicValue(T value)
      : data_(std::in_place_type<Stored<T>>, std::move(value)) {}
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, int64_t>)
  explicit(false) BasicValue(T number) {
    if (std::in_range<int64_t>(number)) {
      data_ = static_cast<int64_t>(number);
    } else {
      data_ = BigInt{std::to_string(number)};
    }
  }
  explicit(false) BasicValue(float number)
      : data_(static_cast<double>(number)) {}
  explicit(false) BasicValue(std::string_view text)
      : data_(std::string(text)) {}
  explicit(false) BasicValue(const char* text) : data_(std::string(text)) {}

  static BasicValue dict() { return Dict{}; }
  static BasicValue list(List items = {}) { return items; }
  static BasicValue tuple(List items) { return Tuple{std::move(items)}; }

  const Data& data() const { return data_; }
  template <typename T>
  bool is() const {
    return std::holds_alternative<Stored<T>>(data_);
  }
  bool is_null() const { return is<std::monostate>(); }
  // Null for other kinds.
  template <typename T>
  const T* get_if() const {
    const auto* stored = std::get_if<Stored<T>>(&data_);
    if constexpr (std::same_as<Stored<T>, T>) {
      return stored;
    } else {
      return stored == nullptr ? nullptr : &**stored;
    }
  }

  // The value of a key; null if it is missing or this is not a dict.
  const BasicValue* find(std::string_view key) const {
    return find_key<std::string>(key);
  }
  const BasicValue* find(int64_t key) const { return find_key<int64_t>(key); }

  // The value of a key, created if missing. A null value becomes a dict;
  // InternalError for any other kind.
  BasicValue& operator[](std::string_view key) { return make_key(key); }
  BasicValue& operator[](int64_t key) { return make_key(key); }

  // A null value becomes a list; InternalError for any other kind.
  void push_back(BasicValue value);

  // Checked reading. The view is valid while this value is and does not change.
  BasicView<Tensor> at(std::string_view key) const;
  BasicView<Tensor> at(int64_t key) const;

 private:
  template <typename Key, typename Wanted>
  const BasicValue* find_key(const Wanted& key) const;
  template <typename Wanted>
  BasicValue& make_key(const Wanted& key);

  Data data_;
};

template <typename Tensor>
struct BasicValue<Tensor>::Entry {
  BasicValue key;  // a string or an int64_t in nearly all files
  BasicValue value;
};

// Every function throws FormatError with the path when the value is missing or
// of another kind.
template <typename Tensor>
class BasicView {
 public:
  using Node = BasicValue<Tensor>;
  explicit(false) BasicView(const Node& node, std::string path = "")
      : node_(&node), path_(std::move(path)) {}

  const Node& value() const { return *node_; }
  const std::string& path() const { return path_; }

  BasicView at(std::string_view key) const;
  BasicView at(int64_t key) const;  // dict key, or index of a list or tuple
  std::optional<BasicView> find(std::string_view key) const;
  std::optional<BasicView> find(int64_t key) const;

  bool as_bool() const { return get<bool>("a bool"); }
  int64_t as_int() const { return get<int64_t>("a whole number"); }
  double as_double() const;  // whole numbers too
  const std::string& as_string() const { return get<std::string>("a string"); }
  const Tensor& as_tensor() const { return get<Tensor>("a tensor"); }
  const typename Node::Dict& as_dict() const {
    return get<typename Node::Dict>("a dict");
  }
  // For a list or a tuple.
  const typename Node::List& as_list() const;

 private:
  template <typename T>
  const T& get(const char* expected) const;
  template <typename Key>
  BasicView require(const Key& key, const std::string& name) const;
  std::string path_of(const std::string& name) const {
    return path_.empty() ? name : path_ + "." + name;
  }

  const Node* node_;
  std::string path_;
};

// "a whole number", by the index of a value's alternative.
LOCKSTEP_EXPORT std::string_view kind_text(size_t alternative);
[[noreturn]] LOCKSTEP_EXPORT void throw_missing(const std::string& path);
[[noreturn]] LOCKSTEP_EXPORT void throw_wrong_kind(const std::string& path,
                                                   const std::string& kind,
                                                   const char* expected);

}  // namespace lockstep

#include "lockstep/value_impl.h"
