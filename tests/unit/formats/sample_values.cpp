#include "unit/formats/sample_values.h"

#include <map>
#include <sstream>

#include "lockstep/base/shape_text.h"
#include "lockstep/formats/byte_reader.h"

namespace lockstep::testing {
namespace {

class Describer {
 public:
  std::string run(const Value& value) {
    add(value);
    return out_.str();
  }

 private:
  void add(const Value& value) {
    std::visit([&](const auto& data) { put(data); }, value.data());
    out_ << ";";
  }

  void put(std::monostate) { out_ << "null"; }
  void put(bool value) { out_ << (value ? "true" : "false"); }
  void put(int64_t value) { out_ << value; }
  void put(const BigInt& value) { out_ << "big " << value.decimal; }
  void put(double value) { out_ << std::hexfloat << value; }
  void put(const std::string& value) { out_ << "'" << value << "'"; }
  void put(const Bytes& value) { out_ << "bytes '" << value.data << "'"; }
  void put(const Opaque& value) { out_ << "object " << value.class_name; }
  void put(const Value::Tuple& value) {
    out_ << "tuple";
    put(value.items);
  }

  void put(const Value::List& items) {
    out_ << "[";
    for (const Value& item : items) add(item);
    out_ << "]";
  }

  void put(const Value::Dict& entries) {
    out_ << "{";
    for (const auto& entry : entries) {
      add(entry.key);
      add(entry.value);
    }
    out_ << "}";
  }

  void put(const Value::Slot& boxed) {
    const TensorRecord& tensor = unboxed(boxed);
    const auto [storage, is_new] = storages_.try_emplace(
        tensor.storage.get(), static_cast<int>(storages_.size()));
    out_ << dtype_info(tensor.dtype).torch_name << shape_text(tensor.shape)
         << shape_text(tensor.strides) << "+" << tensor.offset << " of #"
         << storage->second << " ";
    out_ << as_text(tensor.storage->bytes());
    if (tensor.is_conjugated) out_ << " conjugated";
    if (tensor.is_negated) out_ << " negated";
  }

  std::ostringstream out_;
  std::map<const void*, int> storages_;
};

}  // namespace

TensorRecord float_tensor(std::vector<int64_t> shape,
                          const std::vector<float>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return make_record(DType::kFloat32, std::move(shape),
                     ByteStorage::own({bytes.begin(), bytes.end()}));
}

Value sample_value() {
  const TensorRecord weight = float_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  TensorRecord transposed = weight;
  transposed.shape = {3, 2};
  transposed.strides = {1, 3};
  TensorRecord last = weight;
  last.shape = {};
  last.strides = {};
  last.offset = 5;
  Value value;
  value["step"] = 70'000;
  value["big"] = BigInt{"-36893488147419103232"};
  value["loss"] = 0.125;
  value["name"] = "gr\xc3\xbc\xc3\x9f";
  value["bytes"] = Bytes{std::string("\x00\xff", 2)};
  value["model"]["weight"] = weight;
  value["model"]["tied"] = weight;
  value["model"]["transposed"] = transposed;
  value["model"]["last"] = last;
  value["model"]["empty"] = float_tensor({0, 3}, {});
  value["list"] = Value::list({1, true, Value(), Value::tuple({-1, "x"})});
  value["state"][0]["step"] = float_tensor({}, {3});
  return value;
}

std::string describe(const Value& value) { return Describer().run(value); }

}  // namespace lockstep::testing
