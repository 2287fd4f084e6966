// See bench/gpu_flags.h.
#include "tools/verbs/bench/gpu_flags.h"

#include <array>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "profiles/error.h"

namespace ghostrank {
namespace {

struct GpuFlag {
  const char* names;
  std::string_view accepted;
  const char* why;
};

constexpr std::array kGpuFlags{
    GpuFlag{"-p,--parallel_init", "0", "there are no communicators to set up"},
    GpuFlag{"-y,--stream_null", "0", "there are no CUDA streams"},
    GpuFlag{"-G,--cudagraph", "0", "there are no CUDA graphs"},
    GpuFlag{"-C,--report_cputime", "0", "no CPU of the emulated cluster makes the calls"},
    GpuFlag{"-R,--local_register", "0", "registered and symmetric buffers are not modelled"},
    GpuFlag{"-x,--cta_policy", "0", "NCCL's CTA policies are not modelled"},
    GpuFlag{"-D,--device_implementation", "0", "kernels of the device API are not modelled"},
    GpuFlag{"-V,--device_cta_count", "16", "kernels of the device API are not modelled"},
    GpuFlag{"-M,--memory", "0", "no memory of a GPU is used"},
    GpuFlag{"-u,--unalign", "0", "ghost ranks share their buffers"}};

}  // namespace

void add_gpu_flags(CLI::App& app) {
  for (const GpuFlag& flag : kGpuFlags)
    app.add_option_function<std::string>(
           flag.names,
           [&flag](const std::string& value) {
             if (value == flag.accepted) return;
             throw Error(std::string(flag.names) + " " + value + ": " + flag.why +
                         "; leave it out");
           },
           "not here: " + std::string(flag.why))
        ->group("Of nccl-tests, without effect here");
}

}  // namespace ghostrank
