// Arrays of numpy: an empty array and an element type are made by calls, and
// get their contents as a state.
#include <algorithm>

#include "lockstep/formats/pickle_node.h"

namespace lockstep::formats::pickle {
namespace {

template <typename T>
const T* item(const Refs& items, size_t index) {
  return index < items.size() ? items[index]->get_if<T>() : nullptr;
}

// Python 2 wrote bytes as texts.
std::string_view bytes_of(const Refs& items, size_t index) {
  if (const auto* bytes = item<Bytes>(items, index)) return bytes->data;
  if (const auto* text = item<std::string_view>(items, index)) return *text;
  throw FormatError("pickle: a numpy array has no bytes");
}

std::vector<int64_t> shape_of(const Refs& items, size_t index) {
  const auto* tuple = item<Tuple>(items, index);
  if (tuple == nullptr) {
    throw FormatError("pickle: a numpy array has no shape");
  }
  std::vector<int64_t> shape;
  for (size_t i = 0; i < tuple->items.size(); ++i) {
    const auto* length = item<int64_t>(tuple->items, i);
    if (length == nullptr || *length < 0) {
      throw FormatError("pickle: a numpy array has an impossible shape");
    }
    shape.push_back(*length);
  }
  return shape;
}

// (version, byte order, ...)
void set_type_state(NumpyType& type, const Refs& state) {
  const auto* order = item<std::string_view>(state, 1);
  if (order == nullptr || order->size() != 1) {
    throw FormatError("pickle: a numpy dtype has no byte order");
  }
  type.order = order->front();
}

// (version, shape, type, whether columns come first, bytes)
void set_array_state(Arena& arena, Node& array, const Refs& state) {
  const auto* type = item<NumpyType>(state, 2);
  const auto* columns_first = item<bool>(state, 3);
  const DTypeInfo* dtype =
      type == nullptr ? nullptr
                      : find_dtype(&DTypeInfo::numpy, type->order + type->name);
  if (dtype == nullptr || columns_first == nullptr || *columns_first) {
    array.assign(Opaque{"numpy.ndarray"});
    return;
  }
  const auto bytes = as_bytes(bytes_of(state, 4));
  arena.spend(bytes.size());
  TensorRecord record =
      make_record(dtype->dtype, shape_of(state, 1),
                  ByteStorage::own({bytes.begin(), bytes.end()}));
  if (num_elements(record.shape) * dtype->size_bytes !=
      static_cast<int64_t>(bytes.size())) {
    throw FormatError("pickle: a numpy array has bytes left over");
  }
  array.assign(std::move(record));
}

}  // namespace

// (class, shape, type): all of it comes again with the state.
Ref make_numpy_array(Arena& arena, const Refs&) {
  return arena.make(NumpyArray{});
}

// ('u1', align, copy)
Ref make_numpy_type(Arena& arena, const Refs& arguments) {
  const auto* name = item<std::string_view>(arguments, 0);
  if (name == nullptr) return arena.make(Opaque{"numpy.dtype"});
  return arena.make(NumpyType{.order = '|', .name = std::string(*name)});
}

void set_state(Arena& arena, Node& object, Node& state) {
  const auto* tuple = state.get_if<Tuple>();
  if (auto* type = object.get_if<NumpyType>()) {
    set_type_state(*type, tuple ? tuple->items : Refs{});
  } else if (object.get_if<NumpyArray>() != nullptr) {
    set_array_state(arena, object, tuple ? tuple->items : Refs{});
  }
}

}  // namespace lockstep::formats::pickle
