#include "profiles/device/device.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "profiles/device/kernels/measured.h"
#include "profiles/device/kernels/tables.h"

namespace ghostrank {
namespace {

constexpr double kMaxTflops = 1e9, kMaxGBps = 1e9;

// The peaks' names in a DeviceProfile.
constexpr std::pair<OperandType, std::string_view> kPeaks[] = {{OperandType::bf16, "bfloat16"},
                                                               {OperandType::fp16, "float16"},
                                                               {OperandType::tf32, "tfloat32"},
                                                               {OperandType::fp32, "float32"},
                                                               {OperandType::fp8, "float8"}};

constexpr std::array kKeys{
    Key{"name", KeyType::string, "device", "how reports call the device"},
    Key{"peak_tflops.bf16", KeyType::number, "0", "dense bfloat16 peak; 0: not supported", 0,
        kMaxTflops},
    Key{"peak_tflops.fp16", KeyType::number, "0", "dense float16 peak", 0, kMaxTflops},
    Key{"peak_tflops.tf32", KeyType::number, "0", "dense TensorFloat-32 peak", 0, kMaxTflops},
    Key{"peak_tflops.fp32", KeyType::number, "0", "float32 peak outside the tensor cores", 0,
        kMaxTflops},
    Key{"peak_tflops.fp8", KeyType::number, "0", "dense float8 peak; 0: no products in fp8", 0,
        kMaxTflops},
    Key{"efficiency", KeyType::number, "0.4", "share of the peak that a training step reaches",
        0.001, 1},
    Key{"memory_GBps", KeyType::number, "0", "memory bandwidth; 0: the optimizer takes no time", 0,
        kMaxGBps},
    Key{"memory_bytes", KeyType::size, "0",
        "memory of one GPU; 0: jobs are not checked against it"},
    Key{"compute_capability", KeyType::number, "9",
        "CUDA compute capability; NCCL's topology search is modelled for 8 and 9, and other GPUs "
        "are taken for the nearest of these",
        3, 20},
    Key{"multiprocessors", KeyType::integer, "0",
        "of one GPU; with them dense transformers, and Megatron's experts, are computed kernel by "
        "kernel, else by FLOPs and efficiency",
        0, 10'000},
    Key{"kernels.matmul", KeyType::number, "0.9",
        "share of the peak that matrix products reach, apart from tiles that do not fill the GPU",
        0.001, 1},
    Key{"kernels.memory", KeyType::number, "0.7",
        "share of the memory bandwidth that other kernels reach", 0.001, 1},
    Key{"kernels.launch_us", KeyType::number, "5", "the GPU's time to start a kernel", 0, 1e6},
    Key{"kernels.host_us", KeyType::number, "0",
        "the host's time to launch a kernel; 0: the host never holds the GPU up", 0, 1e6},
    Key{"kernels.products", KeyType::string, "",
        "measured matrix products, as CSV text or the path of a CSV file: "
        "type,operands,m,n,k,batch,us"},
    Key{"kernels.transfers", KeyType::string, "",
        "measured kernels that move bytes, likewise: kind,element,bytes,us"},
    Key{"kernels.attention", KeyType::string, "",
        "measured fused attention, likewise: "
        "type,direction,causal,dropout,batch,heads,key_heads,queries,keys,width,us"},
    Key{"calibration", KeyType::choice, "assumed",
        "where the compute times come from: assumed; fitted: the kernels, to step times of real "
        "runs; fitted_efficiency: that of a device without multiprocessors, likewise; measured "
        "kernel by kernel. A result is valid for step_time only if they are not assumed",
        0, 0, "assumed fitted fitted_efficiency measured"},
    Key{"calibrated_type", KeyType::choice, "any",
        "operands that the calibration is of; it holds for types with the same peak; any: of all "
        "but fp8",
        0, 0, "any bf16 fp16 tf32 fp32 fp8"},
    Key{"step_time_error", KeyType::number, "0",
        "mean distance of predicted from measured step times, as a share; 0: unknown", 0, 1},
    Key{"step_time_error_others", KeyType::number, "0",
        "likewise of frameworks other than megatron, where runs of these were compared, too; 0: "
        "step_time_error",
        0, 1},
    Key{"kernel_error", KeyType::number, "0",
        "likewise of kernels, each predicted from the other measured ones; 0: unknown", 0, 1},
    Key{"source", KeyType::string, "", "where the numbers come from"}};

void read_kernels(const Settings& settings, DeviceProfile& device) {
  device.multiprocessors = settings.small("multiprocessors");
  if (device.multiprocessors > 0 && device.memory_GBps == 0)
    fail(settings.at("multiprocessors").mark,
         "a device with multiprocessors needs its memory_GBps; give it, as in memory_GBps: 3352");
  device.kernels = {settings.number("kernels.matmul"), settings.number("kernels.memory"),
                    settings.number("kernels.launch_us"), settings.number("kernels.host_us")};
  // A calibration of kernels says nothing about efficiency in FLOPs, nor the reverse.
  const std::string& from = settings.text("calibration");
  const bool kernels = device.multiprocessors > 0;
  device.calibration = from == (kernels ? "fitted" : "fitted_efficiency") ? Calibration::fitted
                       : from == "measured" && kernels                    ? Calibration::measured
                                                                          : Calibration::assumed;
  for (const auto& [type, word] : kOperandTypes)
    if (word == settings.text("calibrated_type")) device.calibrated_type = type;
  device.step_time_error = settings.number("step_time_error");
  device.step_time_error_others = settings.number("step_time_error_others");
  device.kernel_error = settings.number("kernel_error");
  KernelTables tables = read_kernel_tables(settings, device);
  if (tables.empty()) return;
  for (const char* table : kKernelTables)
    if (const Setting& given = settings.at("kernels." + std::string(table));
        given.given && !kernels)
      fail(given.mark,
           "measured kernels need the device's multiprocessors; give them, as in "
           "multiprocessors: 132");
  device.measured = std::make_shared<const MeasuredKernels>(std::move(tables), device);
}

}  // namespace

std::span<const Key> device_keys() { return kKeys; }

DeviceProfile make_device(const YamlValue& description) {
  const Settings settings(description, kKeys, "device");
  DeviceProfile device;
  device.name = settings.text("name");
  for (const auto& [type, key] : kOperandTypes)
    if (const double peak = settings.number("peak_tflops." + std::string(key)); peak > 0)
      device.peak_tflops[std::string(peak_name(type))] = peak;
  device.efficiency = settings.number("efficiency");
  device.memory_GBps = settings.number("memory_GBps");
  device.memory_bytes = settings.number("memory_bytes");
  device.compute_capability = settings.number("compute_capability");
  read_kernels(settings, device);
  device.source = settings.text("source");
  return device;
}

std::string_view peak_name(OperandType type) {
  return std::find_if(std::begin(kPeaks), std::end(kPeaks),
                      [&](const auto& peak) { return peak.first == type; })
      ->second;
}

double peak_tflops(const DeviceProfile& device, OperandType type) {
  const auto at = device.peak_tflops.find(std::string(peak_name(type)));
  return at == device.peak_tflops.end() ? 0 : at->second;
}

OperandType operand_type(const DeviceProfile& device, DataType type) {
  const auto first_of = [&](OperandType preferred, OperandType otherwise) {
    return peak_tflops(device, preferred) > 0 ? preferred : otherwise;
  };
  if (type == DataType::float16) return first_of(OperandType::fp16, OperandType::bf16);
  if (type == DataType::float32) return first_of(OperandType::tf32, OperandType::fp32);
  return first_of(OperandType::bf16, OperandType::fp16);
}

OperandType operand_type(const DeviceProfile& device, const Precision& precision) {
  return precision.fp8 ? OperandType::fp8 : operand_type(device, precision.parameters);
}

double matmul_peak_tflops(const DeviceProfile& device, DataType type) {
  return is_integer(type) ? 0 : peak_tflops(device, operand_type(device, type));
}

double matmul_peak_tflops(const DeviceProfile& device, const Precision& precision) {
  const double others = matmul_peak_tflops(device, precision.parameters);
  return precision.fp8 && others > 0 ? peak_tflops(device, OperandType::fp8) : others;
}

}  // namespace ghostrank
