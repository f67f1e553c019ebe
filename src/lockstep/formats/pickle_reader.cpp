#include "lockstep/formats/pickle_reader.h"

#include <bit>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/formats/big_int.h"
#include "lockstep/formats/pickle_node.h"

namespace lockstep::formats {
namespace pickle {
namespace {

constexpr int kMaxDepth = 200;
constexpr int kMaxProtocol = 5;
constexpr size_t kLongestExcerpt = 200;  // In messages.

// The stack machine that a pickle is a program for.
class Machine {
 public:
  Machine(ByteReader& in, const FindStorage& find_storage, Budget& budget)
      : in_(in), find_storage_(find_storage), arena_(budget) {}

  // Runs up to STOP and gives the result, which lives as long as the machine.
  Ref run() {
    while (true) {
      const auto opcode = in_.read<char>();
      if (opcode == '.') return pop();
      if (!push_constant(opcode) && !build(opcode) && !use_memo(opcode)) {
        throw FormatError("pickle: unknown opcode " +
                          std::to_string(static_cast<unsigned char>(opcode)) +
                          " at " + std::to_string(in_.position() - 1));
      }
    }
  }

 private:
  template <typename T>
  void push(T data) {
    push_ref(arena_.make(std::move(data)));
  }

  void push_ref(Ref object) {
    stack_.push_back(object);
    if (stack_.size() <= highest_) return;
    highest_ = stack_.size();
    arena_.spend(2 * sizeof(Ref));  // A vector takes up to twice its items.
  }

  // Never takes what lies below the last mark.
  Ref pop() {
    if (stack_.size() <= floor()) throw FormatError("pickle: empty stack");
    Ref top = stack_.back();
    stack_.pop_back();
    return top;
  }

  Ref top() const {
    if (stack_.size() <= floor()) throw FormatError("pickle: empty stack");
    return stack_.back();
  }

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Refs pop_to_mark() {
    if (marks_.empty()) throw FormatError("pickle: no mark");
    const auto begin =
        stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    Refs items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  Refs pop_many(size_t count) {
    Refs items(count);
    while (count > 0) items[--count] = pop();
    return items;
  }

  bool push_constant(char opcode);
  bool build(char opcode);
  bool use_memo(char opcode);
  void push_integer(std::span<const std::byte> bytes);
  void push_global(std::string_view module, std::string_view name);
  void append(Refs items);
  void set_items(const Refs& items);
  void push_call();
  void remember(uint32_t number);
  Ref remembered(uint32_t number) const;

  ByteReader& in_;
  const FindStorage& find_storage_;
  Arena arena_;
  Refs stack_;
  size_t highest_ = 0;  // Most objects that were on the stack.
  std::vector<size_t> marks_;
  Refs memo_;  // Numbers follow each other, unless someone else chose them:
  std::unordered_map<uint32_t, Ref> scattered_memo_;
};

// Little-endian two's complement of any length.
void Machine::push_integer(std::span<const std::byte> bytes) {
  if (bytes.size() > 8) {
    push(BigInt{decimal_from_bytes(bytes)});
    return;
  }
  const bool is_negative = !bytes.empty() && (bytes.back() >> 7) != std::byte{};
  int64_t number = is_negative ? -1 : 0;
  std::memcpy(&number, bytes.data(), bytes.size());
  push(number);
}

bool Machine::push_constant(char opcode) {
  switch (opcode) {
    case 'N': push(std::monostate()); return true;
    case '\x88': push(true); return true;
    case '\x89': push(false); return true;
    case 'K': push(int64_t{in_.read<uint8_t>()}); return true;
    case 'M': push(int64_t{in_.read<uint16_t>()}); return true;
    case 'J': push(int64_t{in_.read<int32_t>()}); return true;
    case '\x8a': push_integer(in_.take(in_.read<uint8_t>())); return true;
    case 'G':  // big-endian
      push(std::bit_cast<double>(__builtin_bswap64(in_.read<uint64_t>())));
      return true;
    case 'X': push(in_.take_text(in_.read<uint32_t>())); return true;
    case '\x8c': push(in_.take_text(in_.read<uint8_t>())); return true;
    case '\x8d': push(in_.take_text(in_.read<uint64_t>())); return true;
    case 'U': push(in_.take_text(in_.read<uint8_t>())); return true;
    case 'T': push(in_.take_text(in_.read<uint32_t>())); return true;
    case 'C':
      push(Bytes{std::string(in_.take_text(in_.read<uint8_t>()))});
      return true;
    case 'B':
      push(Bytes{std::string(in_.take_text(in_.read<uint32_t>()))});
      return true;
    case ')': push(Tuple{}); return true;
    case ']': push(Refs{}); return true;
    case '}': push(Dict{}); return true;
    case '\x8f': push(Refs{}); return true;  // set
    case 'c': {
      const auto module = in_.take_line();
      push_global(module, in_.take_line());
      return true;
    }
    default: return false;
  }
}

void Machine::push_global(std::string_view module, std::string_view name) {
  push(Global{std::string(module) + "." + std::string(name)});
}

void Machine::append(Refs items) {
  if (auto* list = top()->get_if<Refs>()) {
    arena_.spend(items.size() * sizeof(Ref));
    if (list->empty()) {
      *list = std::move(items);
    } else {
      list->insert(list->end(), items.begin(), items.end());
    }
  } else if (top()->get_if<Opaque>() == nullptr) {
    throw FormatError("pickle: items are added to a value that is not a list");
  }
}

void Machine::set_items(const Refs& items) {
  if (items.size() % 2 != 0) throw FormatError("pickle: a key has no value");
  if (auto* dict = top()->get_if<Dict>()) {
    arena_.spend(items.size() * sizeof(Ref));
    for (size_t i = 0; i < items.size(); i += 2) {
      dict->emplace_back(items[i], items[i + 1]);
    }
  } else if (top()->get_if<Opaque>() == nullptr) {
    throw FormatError("pickle: a key is set in a value that is not a dict");
  }
}

void Machine::push_call() {
  Ref arguments = pop();
  Ref callable = pop();
  const auto* tuple = arguments->get_if<Tuple>();
  if (tuple == nullptr) throw FormatError("pickle: arguments are not a tuple");
  push_ref(call(arena_, *callable, tuple->items));
}

void Machine::remember(uint32_t number) {
  Ref object = top();
  if (number < memo_.size()) {
    memo_[number] = object;
  } else if (number == memo_.size()) {
    arena_.spend(2 * sizeof(Ref));
    memo_.push_back(object);
  } else {
    arena_.spend(3 * sizeof(Ref) + 2 * kAllocationBytes);
    scattered_memo_[number] = object;
  }
}

Ref Machine::remembered(uint32_t number) const {
  if (const auto found = scattered_memo_.find(number);
      found != scattered_memo_.end()) {
    return found->second;
  }
  if (number >= memo_.size())
    throw FormatError("pickle: a memo entry is missing");
  return memo_[number];
}

bool Machine::build(char opcode) {
  switch (opcode) {
    case '(':
      arena_.spend(sizeof(size_t));
      marks_.push_back(stack_.size());
      return true;
    case '0': pop(); return true;
    case 't': push(Tuple{pop_to_mark()}); return true;
    case '\x85': push(Tuple{pop_many(1)}); return true;
    case '\x86': push(Tuple{pop_many(2)}); return true;
    case '\x87': push(Tuple{pop_many(3)}); return true;
    case '\x91': push(pop_to_mark()); return true;  // frozenset
    case 'a': append(pop_many(1)); return true;
    case 'e':
    case '\x90': append(pop_to_mark()); return true;  // list, set
    case 's': set_items(pop_many(2)); return true;
    case 'u': set_items(pop_to_mark()); return true;
    case 'R':
    case '\x81': push_call(); return true;  // function, class
    case '\x92':
      pop();
      push_call();
      return true;  // keyword arguments go
    case 'b': {
      Ref state = pop();
      set_state(arena_, *top(), *state);
      return true;
    }
    case 'Q': {
      Ref id = pop();
      push_ref(load_storage(arena_, *id, find_storage_));
      return true;
    }
    case '\x93': {
      const Refs names = pop_many(2);
      const auto* module = names[0]->get_if<std::string_view>();
      const auto* name = names[1]->get_if<std::string_view>();
      if (!module || !name) throw FormatError("pickle: a class has no name");
      push_global(*module, *name);
      return true;
    }
    default: return false;
  }
}

bool Machine::use_memo(char opcode) {
  switch (opcode) {
    case '\x80':
      if (in_.read<uint8_t>() > kMaxProtocol) {
        throw FormatError("pickle: a protocol newer than 5");
      }
      return true;
    case '\x95': in_.take(8); return true;  // frame
    case 'q': remember(in_.read<uint8_t>()); return true;
    case 'r': remember(in_.read<uint32_t>()); return true;
    case '\x94':
      remember(static_cast<uint32_t>(memo_.size() + scattered_memo_.size()));
      return true;
    case 'h': push_ref(remembered(in_.read<uint8_t>())); return true;
    case 'j': push_ref(remembered(in_.read<uint32_t>())); return true;
    default: return false;
  }
}

// Copies nodes into a tree, in which shared nodes are repeated. Cycles end at
// the depth.
class TreeBuilder {
 public:
  explicit TreeBuilder(Budget& budget) : budget_(budget) {}

  Value build(Node& node) {
    if (++depth_ > kMaxDepth) {
      throw FormatError("pickle: nested deeper than 200, or in a cycle");
    }
    Value value =
        std::visit([&](auto& data) { return convert(data); }, node.data);
    --depth_;
    return value;
  }

 private:
  template <typename T>
  Value convert(const T& scalar) {
    return scalar;
  }

  template <typename T>
  Value convert(const Boxed<T>& boxed) {
    budget_.spend(kAllocationBytes);
    return convert(*boxed);
  }

  Value convert(std::string_view text) {
    budget_.spend(text.size());
    return text;
  }

  Value convert(const Bytes& bytes) {
    budget_.spend(bytes.data.size());
    return bytes;
  }

  Value convert(const TensorRecord& tensor) {
    budget_.spend(sizeof(TensorRecord) + 2 * kAllocationBytes +
                  2 * sizeof(int64_t) * tensor.shape.size());
    return tensor;
  }

  Value convert(const BigInt& big) {
    budget_.spend(big.decimal.size());
    return big;
  }

  Value convert(const Opaque& opaque) {
    budget_.spend(opaque.class_name.size());
    return opaque;
  }

  Value convert(const Global& global) { return convert(Opaque{global.name}); }

  Value convert(const StorageRef&) { return Opaque{"torch.Storage"}; }
  Value convert(const NumpyType&) { return Opaque{"numpy.dtype"}; }
  Value convert(const NumpyArray&) { return Opaque{"numpy.ndarray"}; }

  Value::List convert_items(const Refs& items) {
    budget_.spend(sizeof(Value) * items.size());
    Value::List list;
    list.reserve(items.size());
    for (Ref item : items) list.push_back(build(*item));
    return list;
  }

  Value convert(const Refs& items) { return convert_items(items); }
  Value convert(const Tuple& tuple) {
    return Value::tuple(convert_items(tuple.items));
  }

  Value convert(const Dict& dict) {
    budget_.spend(2 * sizeof(Value) * dict.size());
    Value::Dict entries;
    entries.reserve(dict.size());
    std::unordered_set<std::string_view> names;
    for (const auto& [key, item] : dict) {
      const auto* name = key->get_if<std::string_view>();
      if (name != nullptr && !names.insert(*name).second) {
        throw FormatError("pickle: the key '" +
                          std::string(name->substr(0, kLongestExcerpt)) +
                          "' appears twice");
      }
      entries.push_back({build(*key), build(*item)});
    }
    return entries;
  }

  int depth_ = 0;
  Budget& budget_;
};

}  // namespace
}  // namespace pickle

Value read_pickle(ByteReader& in, const FindStorage& find_storage) {
  return read_pickle(in, find_storage, in.remaining());
}

Value read_pickle(ByteReader& in, const FindStorage& find_storage,
                  uint64_t file_bytes) {
  pickle::Budget budget(file_bytes);
  pickle::Machine machine(in, find_storage, budget);
  return pickle::TreeBuilder(budget).build(*machine.run());
}

Value read_pickle(ByteReader& in) {
  return read_pickle(
      in,
      [](std::string_view key, int64_t) -> std::shared_ptr<const ByteStorage> {
        throw FormatError("pickle: it refers to a storage '" +
                          std::string(key) + "' that it does not hold");
      });
}

}  // namespace lockstep::formats
