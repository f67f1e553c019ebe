#include "lockstep/fid/statistics_file.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "lockstep/base/shape_text.h"
#include "lockstep/checkpoint/record.h"
#include "lockstep/error.h"
#include "lockstep/formats/crc32.h"
#include "lockstep/formats/npz.h"

namespace lockstep::fid {
namespace {

constexpr int64_t kInceptionWidth = 2048;

Tree read_arrays(const std::filesystem::path& path) {
  formats::Value arrays = formats::Value::dict();
  for (auto& [name, array] : formats::read_npz(path))
    arrays[name] = std::move(array);
  return checkpoint::to_tree(arrays);
}

const at::Tensor* find_array(const Tree& arrays, const char* name) {
  const Tree* found = arrays.find(name);
  return found == nullptr ? nullptr : found->get_if<at::Tensor>();
}

FeatureStatistics mean_and_covariance(const Tree& arrays) {
  for (const auto& [mean, covariance] :
       {std::pair("mu", "sigma"), std::pair("m2", "s2")}) {
    const at::Tensor* first = find_array(arrays, mean);
    const at::Tensor* second = find_array(arrays, covariance);
    if (first == nullptr || second == nullptr) continue;
    if (first->dim() != 1 || second->dim() != 2 || first->size(0) < 1 ||
        second->size(0) != first->size(0) ||
        second->size(1) != first->size(0) || !first->is_floating_point() ||
        !second->is_floating_point()) {
      throw FormatError(fmt::format(
          "{} and {} have the shapes {} and {}; expected [n] and [n, n]", mean,
          covariance, base::shape_text(first->sizes().vec()),
          base::shape_text(second->sizes().vec())));
    }
    return {.mean = first->to(at::kDouble).contiguous(),
            .covariance = second->to(at::kDouble).contiguous()};
  }
  throw FormatError(
      "it holds no mu and sigma (nor m2 and s2): no statistics of features");
}

FeatureStatistics checked_statistics(const Tree& arrays) {
  FeatureStatistics statistics = mean_and_covariance(arrays);
  if (!statistics.mean.isfinite().all().item<bool>() ||
      !statistics.covariance.isfinite().all().item<bool>()) {
    throw FormatError("it holds values that are not finite");
  }
  const at::Tensor* count = find_array(arrays, "count");
  if (count != nullptr) {
    if (count->numel() != 1 || count->scalar_type() != at::kLong) {
      throw FormatError("its count is not a single integer");
    }
    statistics.count = count->item<int64_t>();
  }
  return statistics;
}

std::optional<std::string> find_text(const Tree& arrays, const char* name) {
  const at::Tensor* bytes = find_array(arrays, name);
  if (bytes == nullptr) return std::nullopt;
  if (bytes->scalar_type() != at::kByte || bytes->dim() != 1) {
    throw FormatError(fmt::format("its entry '{}' is not text", name));
  }
  const at::Tensor text = bytes->contiguous();
  return std::string(static_cast<const char*>(text.const_data_ptr()),
                     static_cast<size_t>(text.numel()));
}

at::Tensor to_bytes(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::ranges::copy(text, bytes.mutable_data_ptr<uint8_t>());
  return bytes;
}

void check_net(const std::filesystem::path& path, const Tree& arrays,
               const FeatureStatistics& statistics, const FeatureNet& net) {
  const std::optional<std::string> maker = find_text(arrays, "features");
  const int64_t width = statistics.mean.size(0);
  const bool fits = width == net.width() &&
                    (maker ? *maker == net.id() : width == kInceptionWidth);
  if (fits) return;
  throw ConfigError(fmt::format(
      "statistics '{}' were made by the feature extractor '{}' ({} features), "
      "this run scores by '{}' ({} features): give statistics of the same one, "
      "or "
      "have them computed again from the data",
      path.string(), maker.value_or("not named"), width, net.id(),
      net.width()));
}

}  // namespace

FeatureStatistics read_statistics(const std::filesystem::path& path,
                                  const FeatureNet& net) {
  const Tree arrays = read_arrays(path);
  try {
    FeatureStatistics statistics = checked_statistics(arrays);
    check_net(path, arrays, statistics, net);
    return statistics;
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("statistics '{}' cannot be used: {}",
                                  path.string(), error.what()));
  }
}

void write_statistics(const std::filesystem::path& path,
                      const FeatureStatistics& statistics,
                      const FeatureNet& net, const std::string& data) {
  Tree arrays;
  arrays["mu"] = statistics.mean.contiguous();
  arrays["sigma"] = statistics.covariance.contiguous();
  arrays["count"] = at::scalar_tensor(statistics.count, at::kLong);
  arrays["features"] = to_bytes(net.id());
  arrays["data"] = to_bytes(data);
  formats::NamedTensors records;
  const formats::Value values = checkpoint::to_value(arrays);
  for (const char* name : {"mu", "sigma", "count", "features", "data"}) {
    records.emplace_back(name, values.at(name).as_tensor());
  }
  formats::write_npz(path, records);
}

std::string statistics_data(const std::filesystem::path& path) {
  return find_text(read_arrays(path), "data").value_or("");
}

std::string fingerprint_of(const std::vector<at::Tensor>& images) {
  std::vector<uint32_t> sums;
  for (const at::Tensor& image : images) {
    const at::Tensor whole = image.contiguous();
    sums.push_back(formats::crc32_of(
        {static_cast<const std::byte*>(whole.const_data_ptr()),
         whole.nbytes()}));
  }
  return fmt::format("crc32 {:08x} of {} images",
                     formats::crc32_of(std::as_bytes(std::span(sums))),
                     sums.size());
}

}  // namespace lockstep::fid
