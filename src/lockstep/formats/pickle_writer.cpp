#include "lockstep/formats/pickle_writer.h"

#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "lockstep/base/utf8.h"
#include "lockstep/error.h"
#include "lockstep/formats/big_int.h"

namespace lockstep::formats {
namespace {

class PickleWriter {
 public:
  Pickle run(const Value& value) {
    out_ = "\x80\x02";
    write(value);
    out_ += '.';
    return {.bytes = std::move(out_), .storages = std::move(storages_)};
  }

 private:
  void write(const Value& value) {
    std::visit([&](const auto& data) { put(data); }, value.data());
  }

  template <typename T>
  void put_raw(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  void put(std::monostate) { out_ += 'N'; }
  void put(bool value) { out_ += value ? '\x88' : '\x89'; }

  void put(int64_t value) {
    if (std::in_range<uint8_t>(value)) {
      out_ += 'K';
      put_raw(static_cast<uint8_t>(value));
    } else if (std::in_range<int32_t>(value)) {
      out_ += 'J';
      put_raw(static_cast<int32_t>(value));
    } else {
      out_ += "\x8a\x08";
      put_raw(value);
    }
  }

  void put(const BigInt& value) {
    const std::string bytes = bytes_from_decimal(value.decimal);
    if (bytes.size() > 255) {
      throw FormatError("an integer of more than 255 bytes");
    }
    out_ += '\x8a';
    put_raw(static_cast<uint8_t>(bytes.size()));
    out_ += bytes;
  }

  void put(double value) {
    out_ += 'G';
    put_raw(__builtin_bswap64(std::bit_cast<uint64_t>(value)));
  }

  void put(const std::string& text) {
    if (!base::is_utf8(text)) {
      throw FormatError("the string '" + text +
                        "' is not UTF-8, as Python's strings must be; store it "
                        "as Bytes");
    }
    put_text(text);
  }

  void put_text(std::string_view text) {
    if (text.size() > std::numeric_limits<uint32_t>::max()) {
      throw FormatError("a string of more than 4 GiB");
    }
    out_ += 'X';
    put_raw(static_cast<uint32_t>(text.size()));
    out_ += text;
  }

  void put(const Bytes& bytes) {
    put_global("_codecs\nencode");
    put_text(base::utf8_from_latin1(bytes.data));
    put_text("latin1");
    out_ += "\x86R";
  }

  void put(const Value::List& items) {
    out_ += "](";
    for (const Value& item : items) write(item);
    out_ += 'e';
  }

  void put(const Value::Tuple& tuple) {
    out_ += '(';
    for (const Value& item : tuple.items) write(item);
    out_ += 't';
  }

  void put(const Value::Dict& entries) {
    out_ += "}(";
    for (const auto& entry : entries) {
      write(entry.key);
      write(entry.value);
    }
    out_ += 'u';
  }

  void put(const Opaque& object) {
    throw FormatError("an object of class " + object.class_name +
                      " cannot be written; remove it");
  }

  void put(std::span<const int64_t> numbers) {
    out_ += '(';
    for (const int64_t number : numbers) put(number);
    out_ += 't';
  }

  // Named in full the first time, then by its number.
  void put_global(const std::string& name) {
    const auto [known, is_new] =
        globals_.try_emplace(name, static_cast<uint32_t>(globals_.size()));
    out_ += is_new ? "c" + name + "\nr" : "j";
    put_raw(known->second);
  }

  // _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks),
  // or v3 with the type as well for types that have no storage of their own;
  // behind it what the storage's numbers need, in a dict.
  void put(const Value::Slot& boxed) {
    const TensorRecord& tensor = unboxed(boxed);
    const DTypeInfo& info = dtype_info(tensor.dtype);
    const bool is_typed = !info.torch_storage.empty();
    put_global(is_typed ? "torch._utils\n_rebuild_tensor_v2"
                        : "torch._utils\n_rebuild_tensor_v3");
    out_ += '(';
    put_storage(tensor, info);
    put(tensor.offset);
    put(std::span<const int64_t>(tensor.shape));
    put(std::span<const int64_t>(tensor.strides));
    put(false);
    put_global("collections\nOrderedDict");
    out_ += ")R";
    if (!is_typed) put_global("torch\n" + std::string(info.torch_name));
    if (tensor.is_conjugated || tensor.is_negated) {
      out_ += "}(";
      put_text("conj");
      put(tensor.is_conjugated);
      put_text("neg");
      put(tensor.is_negated);
      out_ += 'u';
    }
    out_ += "tR";
  }

  // The persistent id ('storage', type, key, 'cpu', number of elements).
  void put_storage(const TensorRecord& tensor, const DTypeInfo& info) {
    const bool is_typed = !info.torch_storage.empty();
    const auto unit = static_cast<size_t>(info.size_bytes);
    const size_t count = tensor.storage->size() / unit;
    const auto [known, is_new] = keys_.try_emplace(
        {tensor.storage.get(), tensor.dtype}, storages_.size());
    if (is_new) {
      storages_.push_back(tensor.storage->bytes().first(count * unit));
    }
    out_ += '(';
    put_text("storage");
    put_global(is_typed ? "torch\n" + std::string(info.torch_storage)
                        : "torch.storage\nUntypedStorage");
    put_text(std::to_string(known->second));
    put_text("cpu");
    put(static_cast<int64_t>(is_typed ? count : count * unit));
    out_ += "tQ";
  }

  std::string out_;
  std::vector<std::span<const std::byte>> storages_;
  std::map<std::pair<const ByteStorage*, DType>, size_t> keys_;
  std::map<std::string, uint32_t> globals_;
};

}  // namespace

Pickle write_pickle(const Value& value) { return PickleWriter().run(value); }

}  // namespace lockstep::formats
