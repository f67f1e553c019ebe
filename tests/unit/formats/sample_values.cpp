#include "unit/formats/sample_values.h"

#include <map>
#include <sstream>

#include "lockstep/base/shape_text.h"
#include "lockstep/formats/byte_reader.h"

namespace lockstep::testing {
namespace {

class Describer {
 public:
  std::string run(const formats::Value& value) {
    add(value);
    return out_.str();
  }

 private:
  void add(const formats::Value& value) {
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
  void put(const formats::Value::Tuple& value) {
    out_ << "tuple";
    put(value.items);
  }

  void put(const formats::Value::List& items) {
    out_ << "[";
    for (const formats::Value& item : items) add(item);
    out_ << "]";
  }

  void put(const formats::Value::Dict& entries) {
    out_ << "{";
    for (const auto& entry : entries) {
      add(entry.key);
      add(entry.value);
    }
    out_ << "}";
  }

  void put(const formats::Value::Slot& boxed) {
    const formats::TensorRecord& tensor = formats::unboxed(boxed);
    const auto [storage, is_new] = storages_.try_emplace(
        tensor.storage.get(), static_cast<int>(storages_.size()));
    out_ << formats::dtype_info(tensor.dtype).torch_name
         << base::shape_text(tensor.shape) << base::shape_text(tensor.strides)
         << "+" << tensor.offset << " of #" << storage->second << " ";
    out_ << formats::as_text(tensor.storage->bytes());
    if (tensor.is_conjugated) out_ << " conjugated";
    if (tensor.is_negated) out_ << " negated";
  }

  std::ostringstream out_;
  std::map<const void*, int> storages_;
};

}  // namespace

formats::TensorRecord float_tensor(std::vector<int64_t> shape,
                                   const std::vector<float>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return formats::make_record(
      formats::DType::kFloat32, std::move(shape),
      formats::ByteStorage::own({bytes.begin(), bytes.end()}));
}

formats::Value sample_value() {
  const formats::TensorRecord weight = float_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  formats::TensorRecord transposed = weight;
  transposed.shape = {3, 2};
  transposed.strides = {1, 3};
  formats::TensorRecord last = weight;
  last.shape = {};
  last.strides = {};
  last.offset = 5;
  formats::Value value;
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
  value["list"] = formats::Value::list(
      {1, true, formats::Value(), formats::Value::tuple({-1, "x"})});
  value["state"][0]["step"] = float_tensor({}, {3});
  return value;
}

std::string describe(const formats::Value& value) {
  return Describer().run(value);
}

}  // namespace lockstep::testing
