#include "lockstep/tensor/cuda_library.h"

#include <dlfcn.h>

#include <filesystem>

#include "lockstep/error.h"

namespace lockstep::tensor {
namespace {

struct CudaLibrary {
  void* handle = nullptr;
  std::string problem;
};

constexpr const char* kFile = "liblockstep_cuda.so";

// Beside liblockstep, or beside the folder of a program that holds this code
// itself. Empty when it is in neither place.
std::filesystem::path find_file() {
  namespace fs = std::filesystem;
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&find_cuda_symbol), &info);
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (const fs::path& folder :
       {fs::path(info.dli_fname).parent_path(),
        program.parent_path().parent_path() / LOCKSTEP_LIBRARY_FOLDER}) {
    if (fs::exists(folder / kFile, ignored)) return folder / kFile;
  }
  return {};
}

CudaLibrary load() {
  CudaLibrary library;
  const std::filesystem::path path = find_file();
  if (path.empty()) {
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

}  // namespace lockstep::tensor
