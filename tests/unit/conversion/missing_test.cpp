// Linked with the stand-ins for the readers, as where the libraries are
// missing.
#include <gtest/gtest.h>

#include "lockstep/datasets/conversion/hdf5_file.h"
#include "lockstep/datasets/conversion/parquet_file.h"
#include "lockstep/datasets/conversion/video_file.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

template <typename File>
std::string error_of() {
  try {
    File file("a");
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "";
}

TEST(WithoutLibraries, SaysWhatToInstall) {
  EXPECT_NE(
      error_of<conversion::Hdf5File>().find("apt-get install -y libhdf5-dev"),
      std::string::npos);
  EXPECT_NE(error_of<conversion::ParquetFile>().find("pip install pyarrow"),
            std::string::npos);
  EXPECT_NE(error_of<conversion::VideoFile>().find(
                "apt-get install -y libavformat-dev"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
