// Stands in for parquet_file.cpp where the library is missing.
#include "lockstep/datasets/conversion/parquet_file.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

[[noreturn]] void refuse_parquet(const std::string& path) {
  throw ConfigError("cannot read '" + path +
                    "': this lockstep-prepare was built without Arrow. Install "
                    "the Python package pyarrow into the environment of torch "
                    "and build again: pip install pyarrow && ./lockstep.sh "
                    "build");
}

}  // namespace

struct ParquetFile::Impl {};

ParquetFile::ParquetFile(const std::filesystem::path& path) {
  refuse_parquet(path.string());
}

ParquetFile::~ParquetFile() = default;

const std::vector<std::string>& ParquetFile::columns() const {
  refuse_parquet("");
}

size_t ParquetFile::num_rows() const { refuse_parquet(""); }

std::vector<double> ParquetFile::numbers(const std::string& /*column*/) const {
  refuse_parquet("");
}

std::vector<std::string> ParquetFile::texts(
    const std::string& /*column*/) const {
  refuse_parquet("");
}

std::vector<std::vector<std::string>> ParquetFile::text_lists(
    const std::string& /*column*/) const {
  refuse_parquet("");
}

std::vector<formats::Action> ParquetFile::actions(
    const std::string& /*column*/) const {
  refuse_parquet("");
}

void ParquetFile::images(std::span<const std::string> /*columns*/,
                         const Rows& /*rows*/, const TakeBytes& /*take*/) {
  refuse_parquet("");
}

}  // namespace lockstep::conversion
