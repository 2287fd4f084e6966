// ghostrank calibrate compression: how long the built-in compression methods take on this machine's
// CPU, and what bounds them: a method that reads its tensor as fast as a copy does is bound by
// memory, any other by its arithmetic, its sort or its random draws.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <vector>

#include <CLI/CLI.hpp>

#include "collectives/compressor.h"
#include "collectives/gradients/gradient_law.h"
#include "emulator/host/host_facts.h"
#include "profiles/error.h"
#include "profiles/median.h"
#include "tools/report/files/output_files.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs/calibrate/calibrate.h"

namespace ghostrank {
namespace {

constexpr double kMemoryBound = 0.5;  // of a copy's speed and above

struct MethodSpeed {
  std::string method;
  std::uint64_t elements = 0, payload_bytes = 0;
  double compress_ns = 0, decompress_ns = 0;  // an element
  double copy_ns = 0;                         // an element, of copying the tensor
};

// Processor time of this thread: other programs slow the thread, but their own time does not count.
double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Nanoseconds of `work`, the median of several; the first one, which touches new pages, is left
// out.
double time_of(const std::function<void()>& work) {
  work();
  std::vector<double> times;
  for (int i = 0; i < kRepetitions; ++i) {
    const double began = cpu_ns();
    work();
    times.push_back(cpu_ns() - began);
  }
  return median(std::move(times));
}

MethodSpeed measure(const Compressor& method, std::uint64_t elements,
                    const CompressionOptions& options) {
  std::vector<float> tensor(elements), back(elements);
  GradientLaw{}.draw(1, tensor);
  std::vector<std::byte> payload = payload_of(method, tensor, options);
  const auto n = static_cast<double>(elements);
  MethodSpeed row{std::string(method.name), elements, payload.size()};
  row.copy_ns = time_of([&] { std::copy(tensor.begin(), tensor.end(), back.begin()); }) / n;
  row.compress_ns = time_of([&] { method.compress(tensor, options, payload.data()); }) / n;
  CompressionOptions last = options;
  if (method.rounds == 2) {  // both rounds compress; the second one's payload is decompressed
    const std::vector<std::byte> first = payload;
    last.round = 1;
    last.first_sum = first;
    payload = payload_of(method, tensor, last);
    row.payload_bytes += payload.size();
    row.compress_ns += time_of([&] { method.compress(tensor, last, payload.data()); }) / n;
    row.decompress_ns = time_of([&] { method.decompress(payload, last, back); }) / n;
    return row;
  }
  row.decompress_ns = time_of([&] { method.decompress(payload, options, back); }) / n;
  return row;
}

std::string bound_of(const MethodSpeed& row) {
  return row.copy_ns >= kMemoryBound * row.compress_ns ? "memory" : "compute";
}

std::string table_of(const std::vector<MethodSpeed>& rows) {
  Table table{{{"method"},
               {"elements", Align::right},
               {"payload", Align::right},
               {"compress", Align::right},
               {"decompress", Align::right},
               {"of a copy", Align::right},
               {"bound by"}},
              {}};
  for (const MethodSpeed& row : rows)
    table.rows.push_back({row.method, humane_count(static_cast<double>(row.elements)),
                          humane_bytes(static_cast<double>(row.payload_bytes)),
                          significant(row.compress_ns, 3) + " ns",
                          significant(row.decompress_ns, 3) + " ns",
                          humane_percent(row.copy_ns / row.compress_ns), bound_of(row)});
  return "compression on one core of " + cpu_model() + ", per element, medians of " +
         std::to_string(kRepetitions) + "\n\n" + render(table);
}

std::string csv_of(const std::vector<MethodSpeed>& rows) {
  std::string text = "method,elements,payload_bytes,compress_ns,decompress_ns,copy_ns,bound,cpu\n";
  for (const MethodSpeed& row : rows)
    text += row.method + "," + std::to_string(row.elements) + "," +
            std::to_string(row.payload_bytes) + "," + significant(row.compress_ns, 6) + "," +
            significant(row.decompress_ns, 6) + "," + significant(row.copy_ns, 6) + "," +
            bound_of(row) + ",\"" + cpu_model() + "\"\n";
  return text;
}

std::vector<const Compressor*> chosen(const std::vector<std::string>& names) {
  std::vector<const Compressor*> methods;
  std::string known;
  for (const Compressor& method : compressors()) {
    known += (known.empty() ? "" : ", ") + std::string(method.name);
    if (names.empty()) methods.push_back(&method);
  }
  for (const std::string& name : names) {
    const auto all = compressors();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Compressor& m) { return m.name == name; });
    if (found == all.end())
      throw Error("--method: there is no method '" + name + "'; known are " + known);
    methods.push_back(&*found);
  }
  return methods;
}

}  // namespace

int calibrate_compression(const Argv& argv) {
  std::vector<std::string> names;
  std::vector<std::uint64_t> sizes{1 << 16, 1 << 20, 1 << 24};
  CompressionOptions options;
  std::string csv;
  CLI::App app(
      "Measure how long compression methods take on one core of this machine. Other programs "
      "should rest meanwhile.",
      "ghostrank calibrate compression");
  app.add_option("--method", names, "a method; default all; repeatable")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--elements", sizes, "tensor sizes; default 65536,1048576,16777216")
      ->delimiter(',')
      ->check(between(1, std::int64_t{1} << 30))
      ->type_name("N,N");
  app.add_option("--ratio", options.ratio, "what methods with a ratio send; default 0.01")
      ->check(real_between(1e-9, 1))
      ->type_name("SHARE");
  app.add_option("--csv", csv, "the same as CSV; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  if (!parse(app, argv)) return 0;
  check_outputs({{"--csv", csv}});
  std::vector<MethodSpeed> rows;
  for (const Compressor* method : chosen(names))
    for (const std::uint64_t size : sizes) rows.push_back(measure(*method, size, options));
  if (!csv.empty()) write_whole(csv, csv_of(rows));
  if (csv != "-") std::fputs(table_of(rows).c_str(), stdout);
  return 0;
}

}  // namespace ghostrank
