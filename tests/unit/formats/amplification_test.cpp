// A file takes memory of its own order, and time that grows as it does.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "lockstep/error.h"
#include "lockstep/formats/npz.h"
#include "lockstep/formats/pickle_reader.h"
#include "lockstep/formats/pickle_writer.h"
#include "lockstep/formats/safetensors.h"
#include "lockstep/formats/torch_file.h"
#include "support/cpu_time.h"
#include "support/messages.h"
#include "support/peak_memory.h"
#include "support/temp_dir.h"
#include "unit/formats/sample_files.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

using namespace std::string_literals;
using testing::peak_memory_bytes;
using testing::refusal;

constexpr int64_t kMebibyte = int64_t{1} << 20;

// What readers always allow, and room for sanitizers and the allocator.
constexpr int64_t kAlways = 400 * kMebibyte;

formats::ByteSource source_of(const std::string& bytes) {
  return formats::ByteSource(std::as_bytes(std::span(bytes)));
}

std::string list_of_none(size_t count) {
  return "\x80\x02](" + std::string(count, 'N') + "e.";
}

std::string torch_zip(const std::string& pickle, const std::string& storage) {
  return testing::raw_zip(
      {{.name = "a/data.pkl", .content = pickle, .is_deflated = true},
       {.name = "a/data/0", .content = storage, .is_deflated = true}});
}

// The pickle of {"x": tensor} and zeros for its storage.
std::string deflated_tensor_file(size_t num_floats) {
  formats::Value value;
  value["x"] = testing::float_tensor({1}, {0});
  std::string pickle = formats::write_pickle(value).bytes;
  // One number of the storage becomes as many as asked for.
  const std::string count = "cpuK\x01tQ";
  std::string large = "cpuJ";
  const auto number = static_cast<uint32_t>(num_floats);
  large.append(reinterpret_cast<const char*>(&number), sizeof(number));
  pickle.replace(pickle.find(count), count.size(), large + "tQ");
  return torch_zip(pickle, std::string(4 * num_floats, '\0'));
}

TEST(Amplification, OfADeflatedPickleIsRefused) {
  for (const size_t megabytes : {40, 70}) {
    const std::string file = torch_zip(list_of_none(megabytes << 20), "");
    EXPECT_LT(file.size(), 200'000U);
    const auto read = [&] { formats::read_torch_file(source_of(file)); };
    EXPECT_NE(refusal<FormatError>(read).find("more than 64 MiB"),
              std::string::npos);
    EXPECT_LT(peak_memory_bytes(read), kAlways);
  }
}

TEST(Amplification, OfADeflatedStorageIsRefused) {
  const std::string honest = deflated_tensor_file(4'000'000);
  const formats::Value value = formats::read_torch_file(source_of(honest));
  EXPECT_EQ(value.at("x").as_tensor().storage->size(), 16'000'000U);

  const std::string file = deflated_tensor_file(20'000'000);
  EXPECT_LT(file.size(), 500'000U);
  const auto read = [&] { formats::read_torch_file(source_of(file)); };
  EXPECT_NE(refusal<FormatError>(read).find("without compression"),
            std::string::npos);
  EXPECT_LT(peak_memory_bytes(read), kAlways);
}

TEST(Amplification, OfAnArrayOfNumpyIsRefused) {
  const std::string file =
      testing::raw_zip({{.name = "a.npy",
                         .content = std::string(70 << 20, 0),
                         .is_deflated = true}});
  EXPECT_NE(refusal<FormatError>([&] {
              formats::read_npz(source_of(file));
            }).find("without compression"),
            std::string::npos);
}

TEST(Amplification, OfManySmallObjectsIsOfTheirOrder) {
  constexpr size_t kCount = 12 << 20;
  const auto repeated = [](const std::string& part) {
    std::string bytes;
    while (bytes.size() < kCount) bytes += part;
    return bytes;
  };
  for (const std::string& pickle :
       {list_of_none(kCount), "\x80\x02" + std::string(kCount, ']') + ".",
        "\x80\x02" + std::string(kCount, '}') + ".",
        "\x80\x02](" + std::string(kCount, ')') + "e.",
        "\x80\x02](" + std::string(kCount, '\x88') + "e.",
        "\x80\x02" + std::string(kCount, '(') + "N.",
        "\x80\x04N" + std::string(kCount, '\x94') + ".",
        "\x80\x02](" + repeated("K\x01") + "e.",
        "\x80\x02](" + repeated("]r\xff\xff\xff\xff") + "e."}) {
    const auto read = [&] {
      formats::ByteReader in(formats::as_bytes(pickle));
      try {
        formats::read_pickle(in);
      } catch (const FormatError&) {
        return;  // Refused, before it takes more.
      }
    };
    EXPECT_LT(peak_memory_bytes(read), kAlways + 20 * int64_t{kCount})
        << pickle.substr(2, 20);
  }
}

// Such as the labels of a data set, the losses of a run or a permutation.
TEST(Amplification, HonestListsOfNumbersAreRead) {
  formats::Value::List numbers;
  for (int i = 0; i < 1'500'000; ++i) numbers.emplace_back(i % 1000);
  for (int i = 0; i < 500'000; ++i) numbers.emplace_back(0.5 * i);
  const std::string pickle =
      formats::write_pickle(formats::Value::list(numbers)).bytes;
  formats::ByteReader in(formats::as_bytes(pickle));
  EXPECT_EQ(BasicView(formats::read_pickle(in)).as_list().size(),
            numbers.size());
}

TEST(Amplification, HonestStateDictsAreRead) {
  constexpr int kCount = 100'000;
  const formats::TensorRecord tensor =
      testing::float_tensor({2, 1, 1, 1}, {1, 2});
  formats::Value::Dict entries;
  for (int i = 0; i < kCount; ++i) {
    entries.push_back({"m." + std::to_string(i), tensor});
  }
  const std::string pickle = formats::write_pickle(std::move(entries)).bytes;
  formats::ByteReader in(formats::as_bytes(pickle));
  const formats::Value value = formats::read_pickle(
      in, [&](std::string_view, int64_t) { return tensor.storage; });
  EXPECT_EQ(BasicView(value).as_dict().size(), size_t{kCount});
}

std::string safetensors_file(const std::string& header) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) +
         header;
}

std::string header_of(size_t num_tensors) {
  std::string header = "{";
  for (size_t i = 0; i < num_tensors; ++i) {
    header += (i > 0 ? ",\"" : "\"") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  return header + "}";
}

TEST(Amplification, OfASafetensorsHeaderIsOfItsOrder) {
  const std::string tensors = safetensors_file(header_of(400'000));
  EXPECT_EQ(formats::read_safetensors(source_of(tensors)).tensors.size(),
            400'000U);
  std::string texts = R"({"__metadata__":{"a":"")";
  for (int i = 0; i < 1'000'000; ++i) texts += R"(,"":"")";
  texts = safetensors_file(texts + "}}");
  for (const std::string& file : {tensors, texts}) {
    const auto size = static_cast<int64_t>(file.size());
    EXPECT_LT(
        peak_memory_bytes([&] { formats::read_safetensors(source_of(file)); }),
        kAlways + 16 * size);
  }
}

TEST(Amplification, HeadersThatHoldOtherThingsAreRefusedAtOnce) {
  constexpr size_t kCount = 20 << 20;
  const std::string tensor = R"({"a":{"dtype":"U8","data_offsets":[0,0],)";
  for (const std::string& header :
       {tensor + R"("shape":[)" + std::string(kCount, '['),
        tensor + R"("shape":[0)" +
            [] {
              std::string zeros;
              while (zeros.size() < kCount) zeros += ",0";
              return zeros;
            }() +
            "]}}",
        R"({"a":)" + std::string(kCount, '['),
        "{\"" + std::string(kCount, 'x') + "\":1}"}) {
    const std::string file = safetensors_file(header);
    const auto read = [&] { formats::read_safetensors(source_of(file)); };
    const std::string message = refusal<FormatError>(read);
    EXPECT_NE(message, "accepted");
    EXPECT_LT(message.size(), 1000U);
    EXPECT_LT(peak_memory_bytes(read), kAlways);
  }
}

TEST(Amplification, ManyTensorsTakeTimeInProportion) {
  const auto seconds = [](int num_tensors) {
    const std::string file =
        safetensors_file(header_of(static_cast<size_t>(num_tensors)));
    return testing::cpu_seconds(
        [&] { formats::read_safetensors(source_of(file)); });
  };
  EXPECT_LT(testing::growth_of_time(seconds, 80'000), testing::kLinearGrowth);
}

}  // namespace
}  // namespace lockstep
