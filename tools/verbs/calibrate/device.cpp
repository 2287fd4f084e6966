// ghostrank calibrate device: a device profile from kernels that are measured on a GPU of this
// machine, or taken from profiles of PyTorch.
#include "profiles/device/device.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <CLI/CLI.hpp>

#include "profiles/device/kernels/tables.h"
#include "profiles/error.h"
#include "profiles/input/files_read.h"
#include "profiles/input/quantity.h"
#include "profiles/input/yaml.h"
#include "profiles/load/config.h"
#include "profiles/load/locate.h"
#include "profiles/load/tree.h"
#include "tools/calibrate/cuda_library.h"
#include "tools/calibrate/kernel_measurement.h"
#include "tools/calibrate/kineto_kernels.h"
#include "tools/calibrate/measured_device.h"
#include "tools/calibrate/nsys_kernels.h"
#include "tools/calibrate/vtrain_kernels.h"
#include "tools/report/files/output_files.h"
#include "tools/text/humane.h"
#include "tools/verbs/calibrate/calibrate.h"
#include "tools/version.h"
#include "tools/watch/outcome.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

// A device on which jobs are planned only to see which kernels they need: it has a peak for every
// type, and its numbers mean nothing.
constexpr const char* kAnyDevice =
    "device={peak_tflops: {bf16: 1, fp16: 1, tf32: 1, fp32: 1, fp8: 1}, memory_GBps: 1, "
    "multiprocessors: 1}";

struct Flags {
  std::vector<std::string> models, jobs, overrides, types, kineto, nsys, vtrain;
  std::string base, name, output;
  bool grid = false;
  int gpu = 0;
  Effort effort;

  bool imports() const { return !kineto.empty() || !nsys.empty() || !vtrain.empty(); }
  // With files of vTrain, which lack sizes, the job gives the sizes and asks for no measurement.
  bool measures() const {
    return !imports() || grid || !models.empty() || (!jobs.empty() && vtrain.empty());
  }
};

Flags given(const Argv& argv, bool& play) {
  Flags flags;
  CLI::App app(
      "Measure kernels on a GPU of this machine, and write them as a device profile: the products "
      "that models and jobs need, or those of a grid of usual sizes; kernels that move bytes; the "
      "time to start a kernel. Clocks are left alone. Attention, norms and the like come from "
      "kernels that others recorded (--kineto, --nsys, --vtrain), for which no GPU is needed.",
      "ghostrank calibrate device");
  std::vector<std::string> types;
  for (const auto& [type, word] : kOperandTypes) types.emplace_back(word);
  app.add_option("--model", flags.models,
                 "what this model needs, in bf16 and one sample at a time; repeatable")
      ->type_name("MODEL")
      ->allow_extra_args(false);
  app.add_option("--job", flags.jobs, "what this job needs; repeatable")
      ->type_name("JOB.yaml")
      ->allow_extra_args(false);
  app.add_option("-s,--set", flags.overrides, "override any key of every job; repeatable")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--grid", flags.grid, "also a grid of usual sizes, as without a model and a job");
  app.add_option("--types", flags.types,
                 "the operands' types, between commas; default those of the jobs, or bf16")
      ->delimiter(',')
      ->check(one_of(types));
  app.add_option("--kineto", flags.kineto,
                 "kernels of this profile of PyTorch, recorded with record_shapes; repeatable")
      ->type_name("TRACE.json")
      ->allow_extra_args(false);
  app.add_option("--nsys", flags.nsys,
                 "kernels of this export of Nsight Systems, recorded under PyTorch's "
                 "emit_nvtx(record_shapes=True); repeatable")
      ->type_name("REPORT.sqlite")
      ->allow_extra_args(false);
  app.add_option(
         "--vtrain", flags.vtrain,
         "kernels that vTrain's profiler recorded of the layer of the one --job, which says "
         "their sizes; repeatable")
      ->type_name("TRACE")
      ->allow_extra_args(false);
  app.add_option("--base", flags.base,
                 "the device with the published peaks; default by the GPU's name")
      ->type_name("DEVICE");
  app.add_option("--gpu", flags.gpu, "which GPU, as CUDA numbers them; default 0")
      ->check(between(0, 1023));
  app.add_option("--seconds", flags.effort.seconds, "for each kernel, about; default 0.03")
      ->check(real_between(1e-4, 60));
  app.add_option("--rest", flags.effort.rest,
                 "let the GPU rest between runs, so many times as long as they take; default 1: "
                 "without a pause its power limit lowers the clocks more than training does")
      ->check(real_between(0, 100));
  app.add_option("--name", flags.name, "the profile's name; default the base with -measured");
  app.add_option("-o,--output", flags.output, "where the profile goes; default stdout")
      ->type_name("FILE")
      ->group("Output");
  app.footer(
      "Examples:\n"
      "  ghostrank calibrate device -o our-h100.yaml\n"
      "  ghostrank calibrate device --model gpt2-xl -s parallel.micro_batch=4 -o our-h100.yaml\n"
      "  ghostrank calibrate device --job job.yaml --kineto trace.json -o our-h100.yaml\n"
      "  ghostrank calibrate device --kineto trace.json --base h100-sxm -o our-h100.yaml\n"
      "  ghostrank calibrate device --nsys report.sqlite --base h100-sxm -o our-h100.yaml\n"
      "  ghostrank calibrate device --vtrain trace_2048_2_4 --job gpt.yaml --base a100-sxm-80gb");
  play = parse(app, argv);
  if (play && !flags.measures())
    for (const char* flag : {"--types", "--gpu", "--seconds", "--rest"})
      if (app.count(flag) > 0)
        throw Error(std::string(flag) +
                    " is of kernels that are measured, and recorded ones alone need no GPU; leave "
                    "it out, or give --job, --model or --grid");
  if (!flags.overrides.empty() && flags.jobs.empty() && flags.models.empty())
    throw Error(
        "-s changes keys of a job, and there is none; give --job or --model, or leave it out");
  return flags;
}

LoadedJob job_of_model(const std::string& model, const std::vector<std::string>& overrides) {
  YamlValue root = parse_yaml(
      "cluster: {nodes: 1, gpus_per_node: 1, nics_per_node: 1}\n"
      "precision: {parameters: bf16, gradients: bf16}\n",
      std::make_shared<Source>(Source{"--model " + model, "--model", false}));
  apply_override(root, "model=" + model);
  for (const std::string& one : overrides) apply_override(root, one);
  return load_tree(std::move(root), "--model " + model);
}

std::set<ProductShape> wanted_products(const Flags& flags, int multiprocessors) {
  std::vector<std::string> overrides{kAnyDevice};
  overrides.insert(overrides.end(), flags.overrides.begin(), flags.overrides.end());
  std::set<ProductShape> out;
  const auto add = [&](const LoadedJob& job) {
    out.merge(demand_of(job, multiprocessors).products);
  };
  for (const std::string& model : flags.models) add(job_of_model(model, overrides));
  for (const std::string& job : flags.jobs) add(load_job(job, overrides));
  if (out.empty() || flags.grid) out.merge(usual_demand(OperandType::bf16).products);
  if (flags.types.empty()) return out;
  std::vector<OperandType> types;
  for (const auto& [type, word] : kOperandTypes)
    if (std::find(flags.types.begin(), flags.types.end(), word) != flags.types.end())
      types.push_back(type);
  return in_types(out, types);
}

DeviceProfile published(const std::string& base) {
  YamlValue name;
  name.kind = YamlValue::Kind::scalar;
  name.text = base;
  name.mark.source = std::make_shared<Source>(Source{"--base", "--base", false});
  return make_device(resolve_profile(name, kDeviceProfile, ""));
}

// What a GPU without a published profile says of itself; its peaks are the best rates measured.
DeviceProfile own_account(const GhostrankCudaGpu& gpu, const KernelTables& tables) {
  constexpr double kTransfersPerClock = 2;
  DeviceProfile device;
  device.memory_GBps = kTransfersPerClock * gpu.memory_mhz * 1e6 * gpu.bus_bits / 8 * 1e-9;
  device.memory_bytes = static_cast<double>(gpu.memory_bytes);
  device.compute_capability = gpu.capability_major + gpu.capability_minor / 10.;
  device.multiprocessors = gpu.multiprocessors;
  for (const MeasuredProduct& one : tables.products) {
    double& peak = device.peak_tflops[std::string(peak_name(one.shape.type))];
    peak = std::max(peak, one.shape.flops() / one.seconds * 1e-12);
  }
  return device;
}

std::string version_text(int version, int major, int minor) {  // 13000 is 13.0
  return std::to_string(version / major) + "." + std::to_string(version % major / minor);
}

std::string word_of(OperandType type) {
  for (const auto& [one, word] : kOperandTypes)
    if (one == type) return std::string(word);
  return "";
}

// Refuses types without a peak, against which measured times are checked.
void check_peaks(const std::set<ProductShape>& products, const std::string& base) {
  const DeviceProfile device = published(base);
  for (const ProductShape& product : products)
    if (peak_tflops(device, product.type) == 0)
      throw Error("the device " + quote(base) + " has no peak_tflops for " + word_of(product.type) +
                  "; choose other --types, or another --base");
}

void measure(const Flags& flags, MeasuredDevice& out) {
  const CudaGpu gpu(flags.gpu);
  const GhostrankCudaGpu& facts = gpu.facts();
  if (out.base.empty()) out.base = published_profile(facts.name);
  const std::set<ProductShape> products = wanted_products(flags, facts.multiprocessors);
  if (!out.base.empty()) check_peaks(products, out.base);
  Patience measuring("measuring " + humane_count(static_cast<double>(products.size()), "product"));
  KernelMeasurement found = measure_kernels(gpu, products, flags.effort);
  measuring.end();
  for (const std::string& what : found.left_out)
    std::fprintf(stderr, "note: not measured: %s\n", what.c_str());
  out.device = out.base.empty() ? own_account(facts, found.tables) : published(out.base);
  if (out.device.multiprocessors == 0) out.device.multiprocessors = facts.multiprocessors;
  out.device.kernels.launch_us = found.start * 1e6;
  out.device.kernels.host_us = found.host_start * 1e6;
  out.tables = std::move(found.tables);

  const std::string gpu_text =
      std::string(facts.name) +
      (facts.driver[0] == 0 ? "" : ", driver " + std::string(facts.driver)) + ", CUDA " +
      version_text(facts.cuda, 1000, 10) + ", cuBLASLt " + version_text(facts.cublas, 10000, 100);
  const std::string day = utc_now().substr(0, 10);
  out.source = "measured on " + gpu_text + ", " + day + ", by ghostrank " GHOSTRANK_VERSION;
  out.how = {"Measured by `ghostrank calibrate device` on " + day + ": " + gpu_text + ".",
             "Products: the algorithm that cuBLASLt's heuristic puts first, 32 MiB of workspace, "
             "operands of random numbers,",
             "in turn from more memory than the L2 cache holds. Times are from the start of a "
             "kernel to the start of the next,",
             "medians of " + std::to_string(found.least_runs) +
                 " runs or more, each of many kernels that the host had queued before."};
  if (found.most_mhz > 0)
    out.how.push_back("Clocks were left alone: multiprocessors ran at " +
                      std::to_string(found.least_mhz) + " to " + std::to_string(found.most_mhz) +
                      " MHz during products (highest " + std::to_string(facts.sm_mhz) + ").");
  out.how.push_back(
      "Transfers: a copy (elementwise) and a step of Adam on float32 (optimizer); "
      "small ones stay in the L2 cache.");
  out.how.push_back("kernels.host_us: launching from C++; frameworks take longer.");
}

// Puts the kernels of files into the tables; `who` recorded them.
void import_kernels(const RecordedKernels& found, const std::vector<std::string>& paths,
                    const std::string& who, MeasuredDevice& out) {
  std::vector<std::string> names;
  for (const std::string& path : paths)
    names.push_back(std::filesystem::path(path).filename().string());
  const TrainingPace pace = add_recorded(found.tables, out.tables);
  const std::string what = "kernels of PyTorch from " + join(names, ", ") + who +
                           (found.gpu.empty() ? "" : ", recorded on " + found.gpu);
  out.how.push_back("Medians of the " + what + ": those of a kind, type and size.");
  if (pace.slower != 1)
    out.how.push_back("Products of other sizes: times " + significant(pace.slower, 4) +
                      ", the median of what recorded products take of those measured alone (" +
                      humane_count(static_cast<double>(pace.sizes), "size") + ").");
  out.source += (out.source.empty() ? "" : "; ") + what;
  for (const auto& [reason, number] : found.left_out)
    std::fprintf(stderr, "note: %s: %s\n", reason.c_str(),
                 humane_count(static_cast<double>(number), "kernel").c_str());
}

void import_all(const Flags& flags, MeasuredDevice& out) {
  if (!flags.kineto.empty())
    import_kernels(read_kineto_kernels(flags.kineto), flags.kineto, "", out);
  if (!flags.nsys.empty())
    import_kernels(read_nsys_kernels(flags.nsys), flags.nsys, " (nsys)", out);
  if (flags.vtrain.empty()) return;
  if (flags.jobs.size() != 1)
    throw Error(
        "--vtrain: its lines have no sizes; give one --job of the same width, heads, sequence, "
        "tensor parallelism and micro-batch");
  const LoadedJob job = load_job(flags.jobs.front(), flags.overrides);
  import_kernels(read_vtrain_kernels(flags.vtrain, job.spec), flags.vtrain, " (vTrain)", out);
}

// Refuses kernels that are too fast for the device, because every reader refuses such a profile.
void check_rates(const MeasuredDevice& found) {
  const std::string device = found.base.empty() ? "this GPU" : "the device " + quote(found.base);
  const auto check = [&](const std::string& kernel, OperandType type, double flops,
                         double seconds) {
    constexpr const char* kRemedy = "; give the --base of the GPU that ran it";
    const std::string what = kernel + " in " + word_of(type);
    const double peak = peak_tflops(found.device, type), reached = flops / seconds * 1e-12;
    if (peak == 0)
      throw Error(what + ": " + device + " has no peak_tflops for " + word_of(type) + kRemedy);
    if (reached > peak * kAbovePeak)
      throw Error(what + " would reach " + number_text(std::round(reached)) + " TFLOP/s, and " +
                  device + " has a peak of " + number_text(peak) + kRemedy);
  };
  for (const auto& [shape, seconds] : found.tables.products)
    check("a product of " + number_text(shape.m) + " x " + number_text(shape.n) + " x " +
              number_text(shape.k),
          shape.type, shape.flops(), seconds);
  for (const auto& [shape, type, seconds] : found.tables.attention)
    check("attention of " + number_text(shape.queries) + " queries", type, shape.flops(), seconds);
}

std::string summary(const MeasuredDevice& found) {
  const KernelTables& tables = found.tables;
  const auto count = [](std::size_t number, const char* what) {
    return humane_count(static_cast<double>(number), what);
  };
  std::string text = found.name + ": " + count(tables.products.size(), "product") + ", " +
                     count(tables.transfers.size(), "transfer") + ", " +
                     std::to_string(tables.attention.size()) + " of attention; products reach " +
                     humane_percent(found.device.kernels.matmul) + " of the peak, transfers " +
                     humane_percent(found.device.kernels.memory) + " of the bandwidth";
  if (found.device.kernel_error > 0)
    text += "; each predicted from the others, they are off by " +
            humane_percent(found.device.kernel_error) + " on average";
  return text + "\n";
}

}  // namespace

int calibrate_device(const Argv& argv) {
  bool play = false;
  const Flags flags = given(argv, play);
  if (!play) return 0;
  for (const auto* recorded : {&flags.kineto, &flags.nsys, &flags.vtrain})
    for (const std::string& file : *recorded) note_read(file);
  check_outputs({{"--output", flags.output}});
  MeasuredDevice out;
  out.base = flags.base;
  if (flags.measures()) {
    measure(flags, out);
  } else {
    if (out.base.empty())
      throw Error(
          "--base: recorded kernels alone do not say how fast the GPU is at most; give the "
          "published profile of the same GPU, as in --base h100-sxm");
    out.device = published(out.base);
    if (out.device.measured) {
      out.tables = out.device.measured->tables();
      out.source = out.device.source;
    }
    out.how.push_back("Made by `ghostrank calibrate device` of recorded kernels on " +
                      utc_now().substr(0, 10) + ".");
  }
  if (flags.imports()) import_all(flags, out);
  check_rates(out);
  out.how.push_back(out.base.empty()
                        ? "Peaks: assumed to be the best rates measured; the GPU's own account of "
                          "the rest."
                        : "All else: " + out.base + ".");
  out.name = !flags.name.empty() ? flags.name
             : out.base.empty()  ? "measured"
                                 : std::filesystem::path(out.base).stem().string() + "-measured";
  settle(out);
  const std::string yaml = measured_device_yaml(out);
  write_whole(flags.output.empty() ? "-" : flags.output, yaml);
  std::fputs(summary(out).c_str(), stderr);
  return 0;
}

}  // namespace ghostrank
