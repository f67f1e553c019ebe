#include "lockstep/datasets/images/cifar10.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/files.h"
#include "lockstep/base/shape_text.h"
#include "lockstep/error.h"
#include "lockstep/formats/pickle_reader.h"

namespace lockstep::images {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPixels = 3 * kCifar10Side * kCifar10Side;

struct Part {
  at::Tensor images;  // uint8 [N, 3, 32, 32]
  at::Tensor labels;  // int64 [N]
};

Part make_part(int64_t count) {
  return {
      .images = at::empty({count, 3, kCifar10Side, kCifar10Side}, at::kByte),
      .labels = at::empty({count}, at::kLong)};
}

// One byte of label and 3072 of red, green and blue per image.
Part read_binary(std::span<const std::byte> bytes) {
  constexpr size_t kRecord = 1 + kPixels;
  if (bytes.empty() || bytes.size() % kRecord != 0) {
    throw FormatError(
        fmt::format("its {} bytes are not a multiple of {}, which one image "
                    "takes; was it cut off?",
                    bytes.size(), kRecord));
  }
  Part part = make_part(static_cast<int64_t>(bytes.size() / kRecord));
  auto* pixels = part.images.mutable_data_ptr<uint8_t>();
  auto* label = part.labels.mutable_data_ptr<int64_t>();
  for (; !bytes.empty(); bytes = bytes.subspan(kRecord)) {
    *label++ = static_cast<int64_t>(bytes[0]);
    std::memcpy(pixels, bytes.data() + 1, kPixels);
    pixels += kPixels;
  }
  return part;
}

// Keys are texts, or bytes where Python 3 saved what it had loaded with
// encoding="bytes".
BasicView<formats::TensorRecord> entry_of(const formats::Value& batch,
                                          const std::string& key) {
  const auto* dict = batch.get_if<formats::Value::Dict>();
  if (dict == nullptr) throw FormatError("it holds no dict");
  for (const formats::Value::Entry& entry : *dict) {
    const auto* text = entry.key.get_if<std::string>();
    const auto* bytes = entry.key.get_if<Bytes>();
    if ((text != nullptr && *text == key) ||
        (bytes != nullptr && bytes->data == key)) {
      return {entry.value, key};
    }
  }
  throw FormatError(fmt::format("its dict has no '{}'", key));
}

// {'data': uint8 [N, 3072], 'labels': [...]}
Part read_python(std::span<const std::byte> bytes) {
  formats::ByteReader in(bytes);
  const formats::Value batch = formats::read_pickle(in);
  const formats::TensorRecord& data = entry_of(batch, "data").as_tensor();
  const auto labels = entry_of(batch, "labels");
  const auto count = static_cast<int64_t>(labels.as_list().size());
  if (data.dtype != formats::DType::kUInt8 ||
      data.shape != std::vector<int64_t>{count, kPixels}) {
    throw FormatError(fmt::format(
        "'data' is {} for {} labels; expected are bytes of shape [{}, {}]",
        base::shape_text(data.shape), count, count, kPixels));
  }
  Part part = make_part(count);
  std::memcpy(part.images.mutable_data_ptr(),
              formats::packed_elements(data)->bytes().data(),
              part.images.nbytes());
  for (int64_t i = 0; i < count; ++i) {
    part.labels[i] = labels.at(i).as_int();
  }
  return part;
}

void check_cifar_labels(const at::Tensor& labels) {
  if (labels.numel() == 0) throw FormatError("it holds no image");
  const int64_t low = labels.min().item<int64_t>();
  const int64_t high = labels.max().item<int64_t>();
  if (low < 0 || high >= kCifar10Classes) {
    throw FormatError(fmt::format("it has labels from {} to {}, not 0 to {}",
                                  low, high, kCifar10Classes - 1));
  }
}

Part read_part(const fs::path& path) {
  const std::string file = base::read_file(path);
  try {
    const auto bytes = formats::as_bytes(file);
    Part part =
        path.extension() == ".bin" ? read_binary(bytes) : read_python(bytes);
    check_cifar_labels(part.labels);
    return part;
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{} is not a batch of CIFAR-10: {}",
                                  path.string(), error.what()));
  }
}

Cifar10Files files_in(const fs::path& folder) {
  Cifar10Files files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::string ending = entry.path().extension().string();
    if (!entry.is_regular_file() || (!ending.empty() && ending != ".bin")) {
      continue;
    }
    if (name.starts_with("data_batch_")) files.train.push_back(entry.path());
    if (name == "test_batch" || name == "test_batch.bin") {
      files.test.push_back(entry.path());
    }
  }
  std::sort(files.train.begin(), files.train.end());
  return files;
}

}  // namespace

std::optional<Cifar10Files> find_cifar10(const fs::path& folder) {
  for (const fs::path& place : {folder, folder / "cifar-10-batches-py",
                                folder / "cifar-10-batches-bin"}) {
    Cifar10Files files = files_in(place);
    if (!files.train.empty()) return files;
  }
  return std::nullopt;
}

std::shared_ptr<const Dataset> read_cifar10(
    const std::vector<fs::path>& files) {
  std::vector<at::Tensor> images;
  std::vector<at::Tensor> labels;
  for (const fs::path& path : files) {
    Part part = read_part(path);
    images.push_back(std::move(part.images));
    labels.push_back(std::move(part.labels));
  }
  return std::make_shared<TensorDataset>(
      std::vector{at::cat(images), at::cat(labels)});
}

}  // namespace lockstep::images
