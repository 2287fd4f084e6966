#include "profiles/device/device.h"

#include <array>

namespace ghostrank {
namespace {

constexpr double kMaxTflops = 1e9, kMaxGBps = 1e9;

constexpr std::array kKeys{
    Key{"name", KeyType::string, "device", "how reports call the device"},
    Key{"peak_tflops.bf16", KeyType::number, "0", "dense bfloat16 peak; 0: not supported", 0,
        kMaxTflops},
    Key{"peak_tflops.fp16", KeyType::number, "0", "dense float16 peak", 0, kMaxTflops},
    Key{"peak_tflops.tf32", KeyType::number, "0", "dense TensorFloat-32 peak", 0, kMaxTflops},
    Key{"peak_tflops.fp32", KeyType::number, "0", "float32 peak outside the tensor cores", 0,
        kMaxTflops},
    Key{"efficiency", KeyType::number, "0.4", "share of the peak that a training step reaches",
        0.001, 1},
    Key{"memory_GBps", KeyType::number, "0", "memory bandwidth; 0: the optimizer takes no time", 0,
        kMaxGBps},
    Key{"memory_bytes", KeyType::size, "0", "memory of one GPU"},
    Key{"compute_capability", KeyType::number, "9",
        "CUDA compute capability; NCCL's topology search is modelled for 8 and 9, and other GPUs "
        "are taken for the nearest of these",
        3, 20},
    Key{"multiprocessors", KeyType::integer, "0",
        "of one GPU; with them dense transformers are computed kernel by kernel, else by FLOPs and "
        "efficiency",
        0, 10'000},
    Key{"kernels.matmul", KeyType::number, "0.9",
        "share of the peak that matrix products reach, apart from tiles that do not fill the GPU",
        0.001, 1},
    Key{"kernels.memory", KeyType::number, "0.7",
        "share of the memory bandwidth that other kernels reach", 0.001, 1},
    Key{"kernels.launch_us", KeyType::number, "5", "the GPU's time to start a kernel", 0, 1e6},
    Key{"kernels.host_us", KeyType::number, "0",
        "the host's time to launch a kernel; 0: the host never holds the GPU up", 0, 1e6},
    Key{"calibration", KeyType::choice, "assumed",
        "where the compute times come from: assumed; fitted: the kernels, to step times of real "
        "runs; fitted_efficiency: that of a device without multiprocessors, likewise; measured "
        "kernel by kernel. A result is valid for step_time only if they are not assumed",
        0, 0, "assumed fitted fitted_efficiency measured"},
    Key{"step_time_error", KeyType::number, "0",
        "mean distance of predicted from measured step times, as a share; 0: unknown", 0, 1},
    Key{"source", KeyType::string, "", "where the numbers come from"}};

void read_kernels(const Settings& settings, DeviceProfile& device) {
  device.multiprocessors = settings.small("multiprocessors");
  if (device.multiprocessors > 0 && device.memory_GBps == 0)
    fail(settings.at("multiprocessors").mark,
         "a device with multiprocessors needs its memory_GBps; give it, as in memory_GBps: 3352");
  device.kernels = {settings.number("kernels.matmul"), settings.number("kernels.memory"),
                    settings.number("kernels.launch_us"), settings.number("kernels.host_us")};
  // What was said of kernels says nothing of FLOPs, and the other way round.
  const std::string& from = settings.text("calibration");
  const bool kernels = device.multiprocessors > 0;
  device.calibration = from == (kernels ? "fitted" : "fitted_efficiency") ? Calibration::fitted
                       : from == "measured" && kernels                    ? Calibration::measured
                                                                          : Calibration::assumed;
  device.step_time_error = settings.number("step_time_error");
}

}  // namespace

std::span<const Key> device_keys() { return kKeys; }

DeviceProfile make_device(const YamlValue& description) {
  const Settings settings(description, kKeys, "device");
  DeviceProfile device;
  device.name = settings.text("name");
  device.peak_tflops = {{"bfloat16", settings.number("peak_tflops.bf16")},
                        {"float16", settings.number("peak_tflops.fp16")},
                        {"tfloat32", settings.number("peak_tflops.tf32")},
                        {"float32", settings.number("peak_tflops.fp32")}};
  std::erase_if(device.peak_tflops, [](const auto& entry) { return entry.second == 0; });
  device.efficiency = settings.number("efficiency");
  device.memory_GBps = settings.number("memory_GBps");
  device.memory_bytes = settings.number("memory_bytes");
  device.compute_capability = settings.number("compute_capability");
  read_kernels(settings, device);
  device.source = settings.text("source");
  return device;
}

double matmul_peak_tflops(const DeviceProfile& device, DataType type) {
  const auto first_of = [&](const char* preferred, const char* otherwise) {
    for (const char* name : {preferred, otherwise})
      if (const auto at = device.peak_tflops.find(name); at != device.peak_tflops.end())
        return at->second;
    return 0.0;
  };
  if (type == DataType::bfloat16) return first_of("bfloat16", "float16");
  if (type == DataType::float16) return first_of("float16", "bfloat16");
  if (type == DataType::float32) return first_of("tfloat32", "float32");
  return 0;
}

}  // namespace ghostrank
