#include "lockstep/datasets/conversion/hdf5_file.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <array>

#include "lockstep/error.h"
#include "lockstep/formats/lzf.h"

namespace lockstep::conversion {
namespace {

// A number of the library and how it is given back.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw FormatError(fmt::format("'{}': {}", path, why));
}

// The library's own words for the last error are a page of places in its code;
// its first line names what failed.
herr_t take_first(unsigned number, const H5E_error2_t* error, void* text) {
  if (number == 0 && error->desc != nullptr) {
    *static_cast<std::string*>(text) = error->desc;
  }
  return 0;
}

std::string reason() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &text);
  return text.empty() ? "" : " (" + text + ")";
}

// How many numbers; refuses what no image or table of actions has.
size_t checked_count(const std::string& path, const std::string& dataset,
                     const std::vector<size_t>& sides) {
  constexpr size_t kMost = size_t{1} << 31;
  size_t count = 1;
  for (const size_t side : sides) {
    if (side == 0) return 0;
    if (count > kMost / side)
      refuse_file(path, "'" + dataset + "' is too large");
    count *= side;
  }
  return count;
}

// The number that h5py registered for its own filter. Its third value is the
// size of a chunk.
constexpr H5Z_filter_t kLzf = 32000;
constexpr size_t kLzfChunkBytes = 2;

// Called by HDF5 for each chunk; the result replaces the buffer, 0 is an error.
size_t read_lzf(unsigned flags, size_t num_values, const unsigned* values,
                size_t num_bytes, size_t* buffer_size, void** buffer) {
  const bool is_reading = (flags & H5Z_FLAG_REVERSE) != 0;
  if (!is_reading || num_values <= kLzfChunkBytes) return 0;
  try {
    const std::vector<uint8_t> bytes = formats::decompress_lzf(
        {static_cast<const uint8_t*>(*buffer), num_bytes},
        values[kLzfChunkBytes]);
    void* result = H5allocate_memory(bytes.size(), /*clear=*/false);
    if (result == nullptr) return 0;
    std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(result));
    H5free_memory(*buffer);
    *buffer = result;
    *buffer_size = bytes.size();
    return bytes.size();
  } catch (const std::exception&) {
    return 0;  // Nothing may be thrown through C.
  }
}

void register_lzf() {
  const H5Z_class2_t filter = {.version = H5Z_CLASS_T_VERS,
                               .id = kLzf,
                               .encoder_present = 0,
                               .decoder_present = 1,
                               .name = "lzf",
                               .can_apply = nullptr,
                               .set_local = nullptr,
                               .filter = read_lzf};
  H5Zregister(&filter);
}

// Bytes of a chunk; HDF5 reads as many, whatever a filter gives it.
size_t chunk_bytes(hid_t dataset, hid_t properties) {
  std::array<hsize_t, H5S_MAX_RANK> sides{};
  const int rank = H5Pget_chunk(properties, H5S_MAX_RANK, sides.data());
  const Handle type(H5Dget_type(dataset), H5Tclose);
  size_t bytes = H5Tget_size(type.get());
  for (int i = 0; i < rank; ++i) bytes *= sides[static_cast<size_t>(i)];
  return bytes;
}

struct Filter {
  H5Z_filter_t id = 0;
  std::string name = {};
  std::array<unsigned, 8> values = {};
};

std::vector<Filter> filters_of(hid_t properties) {
  std::vector<Filter> filters;
  const int count = H5Pget_nfilters(properties);
  for (int i = 0; i < count; ++i) {
    Filter filter;
    unsigned flags = 0;
    unsigned config = 0;
    size_t num_values = filter.values.size();
    std::array<char, 64> name{};
    filter.id = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags,
                               &num_values, filter.values.data(),
                               name.size() - 1, name.data(), &config);
    filter.name = name.data();
    filters.push_back(filter);
  }
  return filters;
}

void check_lzf(const std::string& path, const std::string& name,
               hid_t dataset) {
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose);
  for (const Filter& filter : filters_of(properties.get())) {
    if (filter.id != kLzf) continue;
    const size_t size = chunk_bytes(dataset, properties.get());
    if (filter.values[kLzfChunkBytes] == size) continue;
    refuse_file(
        path,
        fmt::format("'{}' is damaged: its chunks have {} bytes, for lzf {}",
                    name, size, filter.values[kLzfChunkBytes]));
  }
}

// What the user can do when a compression is not known.
std::string reason_for(hid_t dataset) {
  const std::string text = reason();
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose);
  for (const Filter& filter : filters_of(properties.get())) {
    if (filter.id < 0 || H5Zfilter_avail(filter.id) > 0) continue;
    return fmt::format(
        ": it is compressed by filter {}{}, which is not known. Store it with "
        "gzip or lzf, by h5py or by h5repack -f GZIP=4 IN OUT",
        filter.id, filter.name.empty() ? "" : " (" + filter.name + ")");
  }
  return text;
}

}  // namespace

Hdf5File::Hdf5File(const std::filesystem::path& path) : path_(path.string()) {
  // Else the library prints its errors.
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  register_lzf();
  file_ = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file_ < 0) {
    refuse_file(path_, "cannot be read as HDF5; is it whole?" + reason());
  }
}

Hdf5File::~Hdf5File() { H5Fclose(file_); }

std::vector<std::string> Hdf5File::members(const std::string& group) const {
  const Handle handle(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose);
  H5G_info_t info{};
  if (!handle || H5Gget_info(handle.get(), &info) < 0) {
    refuse_file(path_, fmt::format("there is no group '{}'", group));
  }
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto name_of = [&](char* to, size_t size) {
      return H5Lget_name_by_idx(handle.get(), ".", H5_INDEX_NAME, H5_ITER_INC,
                                i, to, size, H5P_DEFAULT);
    };
    const ssize_t size = name_of(nullptr, 0);
    if (size < 0) {
      refuse_file(path_,
                  fmt::format("group '{}' is damaged{}", group, reason()));
    }
    std::string name(static_cast<size_t>(size), '\0');
    name_of(name.data(), name.size() + 1);
    names.push_back(std::move(name));
  }
  return names;
}

std::optional<std::string> Hdf5File::text_attribute(
    const std::string& object, const std::string& name) const {
  if (H5Aexists_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT) <=
      0) {
    return std::nullopt;
  }
  const Handle attribute(H5Aopen_by_name(file_, object.c_str(), name.c_str(),
                                         H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  const Handle type(H5Aget_type(attribute.get()), H5Tclose);
  const Handle space(H5Aget_space(attribute.get()), H5Sclose);
  if (!attribute || !type || H5Tget_class(type.get()) != H5T_STRING ||
      H5Sget_simple_extent_npoints(space.get()) != 1) {
    return std::nullopt;
  }
  if (H5Tis_variable_str(type.get()) > 0) {
    char* text = nullptr;
    const herr_t status = H5Aread(attribute.get(), type.get(), &text);
    if (status < 0 || text == nullptr) return std::nullopt;
    std::string result(text);
    H5free_memory(text);
    return result;
  }
  std::string text(H5Tget_size(type.get()), '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0) {
    return std::nullopt;
  }
  return text.substr(0, text.find('\0'));
}

Hdf5Shape Hdf5File::shape(const std::string& dataset) const {
  const Handle handle(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose);
  if (!handle) refuse_file(path_, fmt::format("there is no '{}'", dataset));
  const Handle space(H5Dget_space(handle.get()), H5Sclose);
  const Handle type(H5Dget_type(handle.get()), H5Tclose);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (!space || !type || rank < 0) {
    refuse_file(path_, fmt::format("'{}' is damaged{}", dataset, reason()));
  }
  std::vector<hsize_t> sides(static_cast<size_t>(rank));
  H5Sget_simple_extent_dims(space.get(), sides.data(), nullptr);
  const H5T_class_t kind = H5Tget_class(type.get());
  return {.sides = {sides.begin(), sides.end()},
          .is_bytes = kind == H5T_INTEGER && H5Tget_size(type.get()) == 1 &&
                      H5Tget_sign(type.get()) == H5T_SGN_NONE,
          .is_numbers = kind == H5T_INTEGER || kind == H5T_FLOAT};
}

std::vector<uint8_t> Hdf5File::read_bytes(const std::string& dataset,
                                          size_t first, size_t count) const {
  std::vector<size_t> sides = shape(dataset).sides;
  sides.at(0) = count;
  std::vector<uint8_t> bytes(checked_count(path_, dataset, sides));
  const Handle handle(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose);
  check_lzf(path_, dataset, handle.get());
  const Handle space(H5Dget_space(handle.get()), H5Sclose);
  std::vector<hsize_t> start(sides.size(), 0);
  start[0] = first;
  const std::vector<hsize_t> extent(sides.begin(), sides.end());
  const Handle memory(
      H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
      H5Sclose);
  if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr,
                          extent.data(), nullptr) < 0 ||
      H5Dread(handle.get(), H5T_NATIVE_UINT8, memory.get(), space.get(),
              H5P_DEFAULT, bytes.data()) < 0) {
    refuse_file(path_, fmt::format("'{}' cannot be read{}", dataset,
                                   reason_for(handle.get())));
  }
  return bytes;
}

std::vector<float> Hdf5File::read_numbers(const std::string& dataset) const {
  std::vector<float> numbers(
      checked_count(path_, dataset, shape(dataset).sides));
  const Handle handle(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose);
  check_lzf(path_, dataset, handle.get());
  if (H5Dread(handle.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
              numbers.data()) < 0) {
    refuse_file(path_, fmt::format("'{}' cannot be read{}", dataset,
                                   reason_for(handle.get())));
  }
  return numbers;
}

}  // namespace lockstep::conversion
