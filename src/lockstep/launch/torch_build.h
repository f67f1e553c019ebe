// A build of torch on disk: read and compared before anything loads it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::launch {

struct TorchBuild {
  std::string version;           // "2.11.0+cu130"
  std::string cuda;              // "13.0"; empty: a CPU build
  std::filesystem::path folder;  // holds lib/libtorch_cpu.so
};

// The torch in a place: the folder "torch" of a wheel, a virtual environment
// or an unpacked libtorch (the places of cmake/FindLibtorch.cmake).
std::optional<TorchBuild> torch_in(const std::filesystem::path& place);

// "2.28.9": the NCCL of a wheel. Empty where there is none.
std::string nccl_version(const TorchBuild& build);

// Empty, or one sentence that says why programs built for `needed` cannot load
// `found`, and what to install.
std::string torch_mismatch(const TorchBuild& found, const TorchBuild& needed);

// "pip install torch==2.11.0": how to get the torch that programs were built
// for.
std::string pip_command(const TorchBuild& needed);

}  // namespace lockstep::launch
