#include "tools/calibrate/cuda_library.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

#include "profiles/error.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "libghostrank-cuda.so";

std::string library_path() {
  if (const char* given = std::getenv("GHOSTRANK_CUDA_LIBRARY"))
    return fs::absolute(given).string();  // a path with a slash is not searched for elsewhere
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& folder : {here, here.parent_path() / "lib", here.parent_path() / "lib64"})
    if (std::error_code ignored; fs::exists(folder / kFile, ignored))
      return (folder / kFile).string();
  return "";
}

void* load_library() {
  const std::string path = library_path();
  if (path.empty())
    throw Error(std::string(kFile) +
                    " is not there: this ghostrank was built without nvcc; build it where the CUDA "
                    "Toolkit is, or name the library in GHOSTRANK_CUDA_LIBRARY",
                ErrorKind::environment);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(path + " cannot be loaded: " + dlerror() + "; are cuBLASLt's libraries there?",
                ErrorKind::environment);
  return library;
}

template <typename Function>
Function* function_in(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (!found)
    throw Error(std::string(kFile) + " has no " + name + "; build it anew with this ghostrank",
                ErrorKind::environment);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

CudaGpu::CudaGpu(int number) {
  void* const library = load_library();  // stays: CUDA cannot be unloaded
  const auto abi = function_in<decltype(ghostrank_cuda_abi)>(library, "ghostrank_cuda_abi");
  if (abi() != GHOSTRANK_CUDA_ABI)
    throw Error(std::string(kFile) + " is of another version; build it anew with this ghostrank",
                ErrorKind::environment);
  const auto open = function_in<decltype(ghostrank_cuda_open)>(library, "ghostrank_cuda_open");
  time_ = function_in<decltype(ghostrank_cuda_time)>(library, "ghostrank_cuda_time");
  std::array<char, GHOSTRANK_CUDA_ERROR> error{};
  if (open(number, &facts_, error.data()) != 0)
    throw Error(std::string(error.data()) +
                    "; measure on a machine with a GPU of NVIDIA, and give the profile to others",
                ErrorKind::environment);
}

std::optional<GhostrankCudaTime> CudaGpu::time(const GhostrankCudaKernel& kernel,
                                               const Effort& effort, std::string& why) const {
  GhostrankCudaTime time{};
  std::array<char, GHOSTRANK_CUDA_ERROR> error{};
  const std::int32_t status = time_(&kernel, effort.seconds, effort.rest, &time, error.data());
  if (status == 0) return time;
  why = error.data();
  if (status == GHOSTRANK_CUDA_UNSUPPORTED) return std::nullopt;
  throw Error("measuring a kernel: " + why, ErrorKind::environment);
}

}  // namespace ghostrank
