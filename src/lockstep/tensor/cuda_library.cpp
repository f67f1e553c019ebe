#include "lockstep/tensor/cuda_library.h"

#include <dlfcn.h>

#include <filesystem>

#include "lockstep/error.h"

namespace lockstep {
namespace {

struct CudaLibrary {
  void* handle = nullptr;
  std::string problem;
};

// The CUDA parts lie beside liblockstep itself.
std::filesystem::path own_folder() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&find_cuda_symbol), &info);
  return std::filesystem::path(info.dli_fname).parent_path();
}

CudaLibrary load() {
  CudaLibrary library;
  const auto path = own_folder() / "liblockstep_cuda.so";
  if (!std::filesystem::exists(path)) {
    library.problem =
        "this build has no CUDA parts (liblockstep_cuda.so is missing): build "
        "again with a CUDA 13 compiler, ./lockstep.sh build reports what is "
        "missing";
    return library;
  }
  // Global: libtorch_cuda registers its kernels for the whole process.
  library.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library.handle == nullptr) {
    library.problem = std::string("cannot load the CUDA parts: ") + dlerror();
  }
  return library;
}

const CudaLibrary& cuda_library() {
  static const CudaLibrary library = load();
  return library;
}

}  // namespace

void* find_cuda_symbol(const char* name) {
  void* handle = cuda_library().handle;
  return handle == nullptr ? nullptr : dlsym(handle, name);
}

std::string why_no_cuda_library() { return cuda_library().problem; }

void* require_cuda_symbol(const char* name) {
  void* symbol = find_cuda_symbol(name);
  if (symbol != nullptr) return symbol;
  const std::string problem = why_no_cuda_library();
  throw DeviceError(problem.empty()
                        ? std::string("liblockstep_cuda.so has no ") + name +
                              "; it is from a different build"
                        : problem);
}

}  // namespace lockstep
