// Stands in for hdf5_file.cpp where the library is missing.
#include "lockstep/datasets/conversion/hdf5_file.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

[[noreturn]] void refuse_hdf5(const std::string& path) {
  throw ConfigError("cannot read '" + path +
                    "': this lockstep-prepare was built without HDF5. Install "
                    "it and build again: apt-get install -y libhdf5-dev && "
                    "./lockstep.sh build");
}

}  // namespace

Hdf5File::Hdf5File(const std::filesystem::path& path) : path_(path.string()) {
  refuse_hdf5(path_);
}

Hdf5File::~Hdf5File() = default;

std::vector<std::string> Hdf5File::members(const std::string& /*group*/) const {
  refuse_hdf5(path_);
}

std::optional<std::string> Hdf5File::text_attribute(
    const std::string& /*object*/, const std::string& /*name*/) const {
  refuse_hdf5(path_);
}

Hdf5Shape Hdf5File::shape(const std::string& /*dataset*/) const {
  refuse_hdf5(path_);
}

std::vector<uint8_t> Hdf5File::read_bytes(const std::string& /*dataset*/,
                                          size_t /*first*/,
                                          size_t /*count*/) const {
  refuse_hdf5(path_);
}

std::vector<float> Hdf5File::read_numbers(
    const std::string& /*dataset*/) const {
  refuse_hdf5(path_);
}

}  // namespace lockstep::conversion
