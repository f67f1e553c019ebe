#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/utf8.h"
#include "lockstep/error.h"
#include "lockstep/formats/pickle_node.h"
#include "lockstep/formats/sign.h"

namespace lockstep::formats::pickle {
namespace {

template <typename T>
T& expect(const Refs& arguments, size_t index, const char* what) {
  T* found = index < arguments.size() ? arguments[index]->get_if<T>() : nullptr;
  if (found == nullptr) {
    throw FormatError(std::string("pickle: ") + what +
                      " is missing or of another kind");
  }
  return *found;
}

std::vector<int64_t> integers(const Refs& arguments, size_t index,
                              const char* what) {
  std::vector<int64_t> numbers;
  const Refs& items = expect<Tuple>(arguments, index, what).items;
  numbers.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    numbers.push_back(expect<int64_t>(items, i, what));
  }
  return numbers;
}

// {'conj': True, 'neg': False}: what torch has not yet done to the numbers.
void set_metadata(Node& metadata, TensorRecord& tensor) {
  if (metadata.get_if<std::monostate>() != nullptr) return;
  const auto* dict = metadata.get_if<Dict>();
  if (dict == nullptr) throw FormatError("pickle: a tensor's metadata");
  for (const auto& [key, value] : *dict) {
    const auto* name = key->get_if<std::string_view>();
    const auto* is_set = value->get_if<bool>();
    if (name == nullptr || is_set == nullptr ||
        (*name != "conj" && *name != "neg")) {
      throw FormatError("pickle: a tensor has metadata that is not known");
    }
    (*name == "conj" ? tensor.is_conjugated : tensor.is_negated) = *is_set;
  }
  // The conjugate of a real number is the number itself.
  tensor.is_conjugated = tensor.is_conjugated && is_complex(tensor.dtype);
  if (tensor.is_negated && !has_sign_bit(tensor.dtype)) {
    throw FormatError("pickle: a tensor of type " +
                      std::string(dtype_info(tensor.dtype).torch_name) +
                      " is marked as negated");
  }
}

// `metadata` is the place of an argument that may be missing.
Ref make_tensor(Arena& arena, const Refs& arguments, DType dtype,
                size_t metadata) {
  const auto& storage = expect<StorageRef>(arguments, 0, "a tensor's storage");
  TensorRecord tensor{
      .dtype = dtype,
      .shape = integers(arguments, 2, "a tensor's shape"),
      .strides = integers(arguments, 3, "a tensor's strides"),
      .storage = storage.storage,
      .offset = expect<int64_t>(arguments, 1, "a tensor's offset")};
  check_bounds(tensor, storage.num_bytes);
  if (metadata < arguments.size()) set_metadata(*arguments[metadata], tensor);
  if (tensor.is_conjugated || tensor.is_negated) {
    arena.count_copied(tensor, static_cast<uint64_t>(storage.num_bytes));
  }
  return arena.make(std::move(tensor));
}

// (storage, offset, shape, strides, requires_grad, hooks, metadata)
Ref rebuild_tensor(Arena& arena, const Refs& arguments) {
  const auto& storage = expect<StorageRef>(arguments, 0, "a tensor's storage");
  if (storage.dtype == nullptr) {
    throw FormatError("pickle: a tensor has a storage without a type");
  }
  return make_tensor(arena, arguments, storage.dtype->dtype, 6);
}

// The same, over an untyped storage, and the element type before the metadata.
Ref rebuild_typed_tensor(Arena& arena, const Refs& arguments) {
  const auto& name = expect<Global>(arguments, 6, "a tensor's type").name;
  const DTypeInfo* dtype =
      name.starts_with("torch.")
          ? find_dtype(&DTypeInfo::torch_name, std::string_view(name).substr(6))
          : nullptr;
  if (dtype == nullptr) return arena.make(Opaque{"a tensor of " + name});
  return make_tensor(arena, arguments, dtype->dtype, 7);
}

// (data, requires_grad, hooks, ...)
Ref rebuild_parameter(Arena&, const Refs& arguments) {
  expect<TensorRecord>(arguments, 0, "a parameter's tensor");
  return arguments[0];
}

// (function, class, arguments, state): a tensor of a subclass.
Ref rebuild_subclass(Arena& arena, const Refs& arguments) {
  auto& function = expect<Global>(arguments, 0, "a tensor's function");
  if (function.name == "torch._tensor._rebuild_from_type_v2") {
    throw FormatError("pickle: a tensor's function calls itself");
  }
  Node callable(function);
  return call(arena, callable,
              expect<Tuple>(arguments, 2, "a tensor's arguments").items);
}

Ref make_ordered_dict(Arena& arena, const Refs& arguments) {
  Dict dict;
  // Python 2 gave the items as a list of pairs.
  if (!arguments.empty()) {
    for (Ref pair : expect<Refs>(arguments, 0, "the items of an OrderedDict")) {
      auto* list = pair->get_if<Refs>();
      auto* tuple = pair->get_if<Tuple>();
      const Refs* items = list ? list : tuple ? &tuple->items : nullptr;
      if (items == nullptr || items->size() != 2) {
        throw FormatError("pickle: an item of an OrderedDict is not a pair");
      }
      dict.emplace_back((*items)[0], (*items)[1]);
    }
  }
  return arena.make(std::move(dict));
}

Ref make_default_dict(Arena& arena, const Refs&) { return arena.make(Dict{}); }

// torch.Size, set and frozenset have one argument, a list or tuple.
Ref make_tuple(Arena& arena, const Refs& arguments) {
  return arena.make(Tuple{arguments.empty()
                              ? Refs{}
                              : expect<Tuple>(arguments, 0, "a size").items});
}

Ref make_list(Arena& arena, const Refs& arguments) {
  return arena.make(
      Refs(arguments.empty() ? Refs{} : expect<Refs>(arguments, 0, "a set")));
}

// Protocol 2 writes bytes as _codecs.encode(text, 'latin1').
Ref make_bytes(Arena& arena, const Refs& arguments) {
  auto bytes = base::latin1_from_utf8(
      expect<std::string_view>(arguments, 0, "a bytes text"));
  if (!bytes)
    throw FormatError("pickle: an encoded bytes object is not latin1");
  return arena.make(Bytes{*std::move(bytes)});
}

struct Known {
  std::string_view name;
  Ref (*function)(Arena&, const Refs&);
};

constexpr std::array<Known, 16> kKnown = {{
    {"torch._utils._rebuild_tensor_v2", rebuild_tensor},
    {"torch._utils._rebuild_tensor_v3", rebuild_typed_tensor},
    {"torch._utils._rebuild_parameter", rebuild_parameter},
    {"torch._utils._rebuild_parameter_with_state", rebuild_parameter},
    {"torch._tensor._rebuild_from_type_v2", rebuild_subclass},
    {"collections.OrderedDict", make_ordered_dict},
    {"collections.defaultdict", make_default_dict},
    {"torch.Size", make_tuple},
    {"__builtin__.set", make_list},
    {"builtins.set", make_list},
    {"__builtin__.frozenset", make_list},
    {"builtins.frozenset", make_list},
    {"_codecs.encode", make_bytes},
    {"numpy.core.multiarray._reconstruct", make_numpy_array},
    {"numpy._core.multiarray._reconstruct", make_numpy_array},
    {"numpy.dtype", make_numpy_type},
}};

}  // namespace

void Arena::count_copied(const TensorRecord& tensor, uint64_t storage_bytes) {
  constexpr uint64_t kMostTimes = 4;  // Views that overlap.
  if (copied_storages_.insert(tensor.storage.get()).second) {
    copied_storage_bytes_ += storage_bytes;
  }
  copied_bytes_ += num_bytes(tensor);
  if (num_bytes(tensor) <= storage_bytes &&
      copied_bytes_ <= kMostTimes * copied_storage_bytes_) {
    return;
  }
  throw FormatError(
      "pickle: its conjugated and negated tensors have more numbers than are "
      "in "
      "the file; save them after resolve_conj() and resolve_neg()");
}

Ref call(Arena& arena, Node& callable, const Refs& arguments) {
  if (const auto* opaque = callable.get_if<Opaque>()) {
    return arena.make(*opaque);
  }
  const auto* global = callable.get_if<Global>();
  if (global == nullptr) {
    throw FormatError("pickle: something is called that is not a function");
  }
  const auto* known = std::ranges::find(kKnown, global->name, &Known::name);
  if (known == kKnown.end()) return arena.make(Opaque{global->name});
  // What is made of an unknown object is unknown, such as a parameter of a
  // sparse tensor.
  if (!arguments.empty() && arguments[0]->get_if<Opaque>() != nullptr) {
    return arguments[0];
  }
  return known->function(arena, arguments);
}

Ref load_storage(Arena& arena, Node& id, const FindStorage& find_storage) {
  const auto* tuple = id.get_if<Tuple>();
  const Refs items = tuple == nullptr ? Refs{} : tuple->items;
  if (expect<std::string_view>(items, 0, "a persistent id") != "storage") {
    throw FormatError("pickle: a persistent id names no storage");
  }
  const auto& type = expect<Global>(items, 1, "a storage's type").name;
  const auto key = expect<std::string_view>(items, 2, "a storage's key");
  const auto count = expect<int64_t>(items, 4, "a storage's size");
  if (items.size() > 5 && items[5]->get_if<std::monostate>() == nullptr) {
    throw FormatError("pickle: storage '" + std::string(key) +
                      "' is a view of another, as only torch before 0.4 wrote");
  }
  const std::string_view name = type;
  const DTypeInfo* dtype =
      name.starts_with("torch.")
          ? find_dtype(&DTypeInfo::torch_storage, name.substr(6))
          : nullptr;
  if (dtype == nullptr && name != "torch.storage.UntypedStorage") {
    return arena.make(Opaque{type});
  }
  int64_t num_bytes = 0;
  if (count < 0 || __builtin_mul_overflow(count, dtype ? dtype->size_bytes : 1,
                                          &num_bytes)) {
    throw FormatError("pickle: a storage of impossible size");
  }
  return arena.make(StorageRef{.storage = find_storage(key, num_bytes),
                               .dtype = dtype,
                               .num_bytes = num_bytes});
}

}  // namespace lockstep::formats::pickle
