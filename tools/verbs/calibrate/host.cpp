// ghostrank calibrate host: how fast a core sums what it has just received, and steps weights with
// it, and how much all cores together move through memory. The work is that of servers with keys
// (collectives/agent.h, Work), on float32.
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "collectives/common/data_type.h"
#include "collectives/schemes/keyed/nesterov.h"
#include "emulator/common/monotonic.h"
#include "emulator/host/host_facts.h"
#include "profiles/median.h"
#include "tools/report/files/output_files.h"
#include "tools/text/humane.h"
#include "tools/verbs/calibrate/calibrate.h"

namespace ghostrank {
namespace {

constexpr std::size_t kFloats = std::size_t{16} << 20;  // of an array: larger than most caches
constexpr std::size_t kPiece = std::size_t{64} << 10;   // floats of a key

struct Speeds {
  int cores = 1;
  double add_GBps = 0, optimizer_GBps = 0, memory_GBps = 0;
};

// Bytes a nanosecond: the median over repetitions of `bytes` over the time that `work` takes. The
// first repetition, which touches new pages, does not count.
double rate(double bytes, const std::function<void()>& work) {
  work();
  std::vector<double> rates;
  for (int i = 0; i < kRepetitions; ++i) {
    const std::int64_t began = monotonic_ns();
    work();
    rates.push_back(bytes / static_cast<double>(std::max<std::int64_t>(1, monotonic_ns() - began)));
  }
  return median(std::move(rates));
}

double add_rate(std::vector<float>& sums, const std::vector<float>& arrived) {
  return rate(static_cast<double>(kFloats * sizeof(float)), [&] {
    for (std::size_t i = 0; i < kFloats; i += kPiece)
      add_elements(DataType::float32, std::as_writable_bytes(std::span(sums)).data() + i * 4,
                   std::as_bytes(std::span(arrived)).data() + i * 4, kPiece);
  });
}

double optimizer_rate(std::vector<float>& weights, std::vector<float>& moments,
                      const std::vector<float>& gradients) {
  return rate(static_cast<double>(kFloats * sizeof(float)),
              [&] { take_step(Nesterov{}, weights, moments, gradients); });
}

// All cores copy, each its own part; a copied byte passes the memory twice.
double memory_rate(std::vector<float>& to, const std::vector<float>& from, int cores) {
  const std::size_t part = kFloats / cores;
  return rate(2.0 * static_cast<double>(part * sizeof(float)) * cores, [&] {
    std::vector<std::thread> threads;
    for (int c = 0; c < cores; ++c)
      threads.emplace_back([&, begin = static_cast<std::size_t>(c) * part] {
        std::copy_n(from.data() + begin, part, to.data() + begin);
      });
    for (std::thread& thread : threads) thread.join();
  });
}

Speeds measure() {
  Speeds out{.cores = usable_cores()};
  std::vector<float> a(kFloats, 1), b(kFloats, 1), c(kFloats, 1e-3F);
  out.add_GBps = add_rate(a, c);
  out.optimizer_GBps = optimizer_rate(a, b, c);
  out.memory_GBps = memory_rate(a, b, out.cores);
  return out;
}

std::string yaml_of(const Speeds& s) {
  return "# measured on " + cpu_model() + " with " + humane_count(s.cores, "core") +
         ", float32, medians of " + std::to_string(kRepetitions) +
         "\nservers: {cores: " + std::to_string(s.cores) +
         ", add_GBps: " + significant(s.add_GBps) +
         ", optimizer_GBps: " + significant(s.optimizer_GBps) +
         ", memory_GBps: " + significant(s.memory_GBps) + "}\n";
}

std::string json_of(const Speeds& s) {
  const nlohmann::ordered_json json{{"schema", "ghostrank/calibration/1"},
                                    {"cpu", cpu_model()},
                                    {"cores", s.cores},
                                    {"add_GBps", s.add_GBps},
                                    {"optimizer_GBps", s.optimizer_GBps},
                                    {"memory_GBps", s.memory_GBps}};
  return json.dump(2) + "\n";
}

}  // namespace

int calibrate_host(const Argv& argv) {
  std::string output, json;
  CLI::App app(
      "Measure how fast this machine sums and steps weights, as the keys servers.* of a job. "
      "Other programs should rest meanwhile.",
      "ghostrank calibrate host");
  app.add_option("-o,--output", output, "write the keys as YAML; default stdout")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--json", json, "the same as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  if (!parse(app, argv)) return 0;
  check_outputs({{"--output", output}, {"--json", json}});
  const Speeds speeds = measure();
  const int unwritten = write_each(std::vector<TextFile>{
      {json, [&] { return json_of(speeds); }}, {output, [&] { return yaml_of(speeds); }}});
  if (output.empty() && json != "-") std::fputs(yaml_of(speeds).c_str(), stdout);
  return unwritten;
}

}  // namespace ghostrank
