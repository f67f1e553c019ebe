#include "lockstep/checkpoint/weight_files.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/base/shape_text.h"
#include "lockstep/base/workers.h"
#include "lockstep/checkpoint/record.h"
#include "lockstep/checkpoint/storage_read.h"
#include "lockstep/error.h"
#include "lockstep/formats/safetensors.h"
#include "lockstep/formats/sha256.h"
#include "lockstep/formats/torch_file.h"
#include "lockstep/formats/weight_index.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFolderFiles = {
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
    "pytorch_model.bin.index.json", "model.pt"};
constexpr std::string_view kIndexEnd = ".index.json";
// So much of a file is in memory at a time, besides what is asked for.
constexpr size_t kLoadPieceBytes = size_t{32} << 20;
constexpr size_t kHashPieceBytes = size_t{1} << 20;

fs::path file_in(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  std::string tried;
  for (const char* name : kFolderFiles) {
    if (fs::exists(path / name)) return path / name;
    tried += (tried.empty() ? "" : ", ") + std::string(name);
  }
  throw ConfigError(fmt::format("the folder '{}' holds no weights: none of {}",
                                path.string(), tried));
}

formats::NamedTensors tensors_of(const formats::ByteSource& source) {
  if (!formats::is_torch_file(source) && formats::is_safetensors_file(source)) {
    return formats::read_safetensors(source).tensors;
  }
  const formats::Value whole = formats::read_torch_file(source);
  formats::NamedTensors tensors;
  for (const auto& entry : BasicView(find_value_dict(whole)).as_dict()) {
    const auto* name = entry.key.get_if<std::string>();
    const auto* tensor = entry.value.get_if<formats::TensorRecord>();
    if (name != nullptr && tensor != nullptr) {
      tensors.emplace_back(*name, *tensor);
    }
  }
  return tensors;
}

// An expanded tensor may have any number of elements that are one in the file.
void check_repeats(const std::string& name,
                   const formats::TensorRecord& record) {
  constexpr size_t kAlways = size_t{64} << 20;
  if (formats::num_bytes(record) <= record.storage->size() + kAlways) return;
  throw FormatError(fmt::format(
      "tensor '{}' of shape {} repeats the {} bytes that it has in the file; "
      "save it after contiguous()",
      name, base::shape_text(record.shape), record.storage->size()));
}

// Name, size and time of a file: others mean that it may have changed.
std::string mark_of(const fs::path& path) {
  return fmt::format("{}\n{} {}\n", fs::canonical(path).string(),
                     fs::file_size(path),
                     fs::last_write_time(path).time_since_epoch().count());
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

// The numbers of is_packed() from element `first` on, as many as fit.
void read_elements(const formats::TensorRecord& record, int64_t first,
                   const at::Tensor& to) {
  const std::array reads = {StorageRead{
      .from = record.storage.get(),
      .offset = static_cast<size_t>((record.offset + first) *
                                    formats::size_bytes(record.dtype)),
      .to = bytes_of(to)}};
  read_all(reads);
}

// Puts the numbers into a tensor that was never written to.
void fill(const formats::TensorRecord& record, const at::Tensor& to) {
  if (!formats::is_packed(record)) {
    to.copy_(copy_of(record));
    return;
  }
  const at::ScalarType own = to_scalar_type(record.dtype);
  if (to.is_cpu() && to.scalar_type() == own) {
    return read_elements(record, 0, to);
  }
  // With pinned memory the next piece is read while this one is copied, and the
  // device converts the type.
  const auto options = at::TensorOptions(own).pinned_memory(to.is_cuda());
  const int64_t step =
      static_cast<int64_t>(kLoadPieceBytes) / formats::size_bytes(record.dtype);
  const at::Tensor flat = to.view(-1);
  for (int64_t done = 0; done < flat.numel(); done += step) {
    const at::Tensor piece =
        at::empty({std::min(step, flat.numel() - done)}, options);
    read_elements(record, done, piece);
    flat.narrow(0, done, piece.numel()).copy_(piece, /*non_blocking=*/true);
  }
}

bool is_digest(std::string_view text) {
  return text.size() == 64 &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

struct WeightFiles::Entry {
  formats::TensorRecord record;
};

struct WeightFiles::Content {
  void add_file(const fs::path& path, std::map<std::string, Entry>& found) {
    marks += mark_of(path);
    const formats::ByteSource source = formats::open_source(path);
    try {
      for (auto& [name, record] : tensors_of(source)) {
        check_repeats(name, record);
        found[name] = {.record = std::move(record)};
      }
    } catch (const FormatError& error) {
      throw FormatError(fmt::format("'{}' is damaged or holds no weights: {}",
                                    path.string(), error.what()));
    }
  }

  void add_index(const fs::path& path) {
    marks += mark_of(path);
    std::map<std::string, std::string> index;
    try {
      index = formats::parse_weight_index(base::read_file(path));
    } catch (const FormatError& error) {
      throw FormatError(fmt::format("'{}' is damaged or not a weight index: {}",
                                    path.string(), error.what()));
    }
    std::map<std::string, std::map<std::string, Entry>> shards;
    for (const auto& [name, file] : index) {
      const fs::path shard = path.parent_path() / file;
      if (!fs::exists(shard)) {
        throw IoError(fmt::format(
            "'{}' names the file '{}', which is not there; download all files "
            "of the model",
            path.string(), shard.string()));
      }
      const auto [found, is_new] = shards.try_emplace(file);
      if (is_new) add_file(shard, found->second);
      const auto tensor = found->second.find(name);
      if (tensor == found->second.end()) {
        throw FormatError(fmt::format(
            "'{}' lists tensor '{}' in '{}', which does not hold it",
            path.string(), name, shard.string()));
      }
      entries.insert(*tensor);
    }
  }

  std::string digest(const formats::TensorRecord& record) const {
    formats::Sha256 digest;
    if (!formats::is_packed(record)) {
      digest.add(formats::packed_elements(record)->bytes());
      return digest.hex();
    }
    const size_t first =
        static_cast<size_t>(record.offset * formats::size_bytes(record.dtype));
    const size_t size = formats::num_bytes(record);
    std::vector<std::byte> piece(std::min(size, kHashPieceBytes));
    for (size_t done = 0; done < size; done += piece.size()) {
      piece.resize(std::min(piece.size(), size - done));
      record.storage->read(first + done, piece);
      digest.add(piece);
    }
    return digest.hex();
  }

  std::string hash() const {
    std::vector<const Entry*> in_order;
    for (const auto& [name, entry] : entries) in_order.push_back(&entry);
    std::vector<std::string> digests(in_order.size());
    base::run_workers(std::ssize(in_order), 0, [&](int64_t i) {
      const auto place = static_cast<size_t>(i);
      digests[place] = digest(in_order[place]->record);
    });
    formats::Sha256 whole;
    size_t place = 0;
    for (const auto& [name, entry] : entries) {
      whole.add(fmt::format("{}:{} {} {} {}\n", name.size(), name,
                            formats::dtype_info(entry.record.dtype).torch_name,
                            base::shape_text(entry.record.shape),
                            digests[place++]));
    }
    return whole.hex();
  }

  std::map<std::string, Entry> entries = {};
  std::string marks = {};  // For all files.
};

WeightFiles::WeightFiles(const fs::path& path) : path_(file_in(path)) {
  auto content = std::make_unique<Content>();
  if (!fs::exists(path_)) {
    throw IoError(fmt::format("there is no file '{}'", path_.string()));
  }
  if (path_.string().ends_with(kIndexEnd)) {
    content->add_index(path_);
  } else {
    content->add_file(path_, content->entries);
  }
  if (content->entries.empty()) {
    throw FormatError(
        fmt::format("'{}' holds no named tensors", path_.string()));
  }
  content_ = std::move(content);
}

WeightFiles::~WeightFiles() = default;
WeightFiles::WeightFiles(WeightFiles&&) noexcept = default;
WeightFiles& WeightFiles::operator=(WeightFiles&&) noexcept = default;

std::vector<std::string> WeightFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : content_->entries) names.push_back(name);
  return names;
}

bool WeightFiles::has(const std::string& name) const {
  return content_->entries.contains(name);
}

const WeightFiles::Entry& WeightFiles::find(const std::string& name) const {
  const auto found = content_->entries.find(name);
  if (found == content_->entries.end()) {
    throw ConfigError(
        fmt::format("'{}' holds no tensor '{}'", path_.string(), name));
  }
  return found->second;
}

WeightFacts WeightFiles::facts(const std::string& name) const {
  const formats::TensorRecord& record = find(name).record;
  return {.shape = record.shape, .dtype = to_scalar_type(record.dtype)};
}

at::Tensor WeightFiles::get(const std::string& name) const {
  return copy_of(find(name).record);
}

at::Tensor WeightFiles::row(const std::string& name, int64_t index) const {
  formats::TensorRecord row = find(name).record;
  if (row.shape.empty() || index < 0 || index >= row.shape[0]) {
    throw ConfigError(fmt::format("'{}': tensor '{}' of shape {} has no row {}",
                                  path_.string(), name,
                                  base::shape_text(row.shape), index));
  }
  row.offset += index * row.strides[0];
  row.shape.erase(row.shape.begin());
  row.strides.erase(row.strides.begin());
  return copy_of(row);
}

at::Tensor WeightFiles::load(const std::string& name,
                             const at::TensorOptions& to) const {
  const at::NoGradGuard no_grad;
  const formats::TensorRecord& record = find(name).record;
  const auto type = to.has_dtype() ? c10::typeMetaToScalarType(to.dtype())
                                   : to_scalar_type(record.dtype);
  at::Tensor made = at::empty(record.shape, to.dtype(type));
  try {
    fill(record, made);
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("'{}' has changed since it was opened: {}",
                                  path_.string(), error.what()));
  }
  return made;
}

std::string WeightFiles::content_hash(const fs::path& notes) const {
  if (notes.empty()) return content_->hash();
  const fs::path note =
      notes /
      ("weights-" + formats::sha256_of(content_->marks).substr(0, 32) + ".txt");
  const auto known = base::try_read_file(note);
  if (known && is_digest(*known)) return *known;
  std::string hash = content_->hash();
  try {
    base::make_output_folder(notes);
    base::write_file_atomically(note, hash);
  } catch (const IoError&) {
    // The next call computes it again.
  }
  return hash;
}

namespace {

struct Place {
  at::Tensor own;
  std::string name_in_file;
};

bool is_ignored(const std::string& name, const FillConfig& config) {
  return std::ranges::any_of(
      config.ignored_prefixes,
      [&](const std::string& prefix) { return name.starts_with(prefix); });
}

// Compares names and shapes; `places` is what fits.
LoadReport compare(const torch::nn::Module& module, const WeightFiles& files,
                   const FillConfig& config, std::vector<Place>& places) {
  LoadReport report;
  std::set<std::string> used;
  for (const auto& [name, own] : named_tensors(module)) {
    const auto in_file = config.name_in_file ? config.name_in_file(name)
                                             : std::optional<std::string>(name);
    if (!in_file) continue;
    used.insert(*in_file);
    if (!files.has(*in_file)) {
      report.missing.push_back(*in_file);
      continue;
    }
    const WeightFacts given = files.facts(*in_file);
    if (at::IntArrayRef(given.shape) != own.sizes()) {
      report.mismatched.push_back(fmt::format(
          "{}: file {}, module {}", *in_file, base::shape_text(given.shape),
          base::shape_text(own.sizes())));
      continue;
    }
    places.push_back({.own = own, .name_in_file = *in_file});
  }
  for (const std::string& name : files.names()) {
    if (!used.contains(name) && !is_ignored(name, config)) {
      report.unexpected.push_back(name);
    }
  }
  return report;
}

}  // namespace

LoadReport fill_module(torch::nn::Module& module, const WeightFiles& files,
                       const FillConfig& config) {
  std::vector<Place> places;
  LoadReport report = compare(module, files, config, places);
  if (!report.is_complete()) {
    throw ConfigError(
        fmt::format("'{}' does not fit the model{}. Was it saved by a "
                    "different model or configuration?",
                    files.path().string(), report.text()));
  }
  for (Place& place : places) {
    at::TensorOptions to(config.device);
    if (config.dtype &&
        at::isFloatingType(files.facts(place.name_in_file).dtype)) {
      to = to.dtype(*config.dtype);
    }
    place.own.set_data(files.load(place.name_in_file, to));
    ++report.num_loaded;
  }
  return report;
}

}  // namespace lockstep::checkpoint
