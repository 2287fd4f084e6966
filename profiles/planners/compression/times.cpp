#include "profiles/planners/compression/times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "collectives/compressor.h"
#include "profiles/input/csv.h"
#include "profiles/input/input_file.h"
#include "profiles/input/named_text.h"
#include "profiles/input/quantity.h"
#include "profiles/input/shipped.h"
#include "profiles/input/yaml.h"

namespace ghostrank {
namespace {

constexpr std::array<std::string_view, 4> kColumns{"method", "elements", "compress_ns",
                                                   "decompress_ns"};

// Where the columns lie; empty if one is missing.
std::optional<std::array<std::size_t, 4>> columns_in(const CsvTable& table) {
  std::array<std::size_t, 4> columns{};
  for (std::size_t c = 0; c < kColumns.size(); ++c) {
    const auto found = table.column(kColumns[c]);
    if (!found) return std::nullopt;
    columns[c] = *found;
  }
  return columns;
}

// A row has times per element; returns those of the whole tensor.
std::optional<CompressionTime> time_of(const std::vector<std::string>& row,
                                       const std::array<std::size_t, 4>& columns) {
  std::array<double, 4> numbers{};
  for (std::size_t c = 1; c < kColumns.size(); ++c) {
    const std::optional<double> number =
        columns[c] < row.size() ? parse_number(row[columns[c]]) : std::nullopt;
    if (!number || *number < 0 || !std::isfinite(*number)) return std::nullopt;
    numbers[c] = *number;
  }
  const double elements = numbers[1];
  if (elements < 1 || elements > 1e15 || elements != std::floor(elements)) return std::nullopt;
  return CompressionTime{static_cast<std::uint64_t>(elements), elements * numbers[2],
                         elements * numbers[3]};
}

constexpr std::string_view kFolder = "costs", kExtension = ".csv";

NamedText table_named(const Setting& file, const std::string& folder) {
  const std::string& text = file.text;
  if (names_shipped_costs(text)) {
    if (std::string path = shipped_file(text, kFolder, kExtension); !path.empty())
      return {read_input(path), path};
    const std::vector<std::string> known = shipped_names(kFolder, kExtension);
    fail(file.mark,
         "compression.costs is " + quote(text) + "; write v100, " +
             (known.empty() ? "" : join(known, ", ") + ", ") +
             "or the path of a CSV file of `ghostrank calibrate compression --csv FILE`");
  }
  std::optional<NamedText> table = named_text(text, file.key->path, folder);
  if (!table)
    fail(file.mark, "compression.costs is " + quote(text) +
                        ": there is no such file; write it by `ghostrank calibrate compression "
                        "--csv FILE`, or v100");
  return std::move(*table);
}

CompressionTime scaled(const CompressionTime& time, std::uint64_t elements) {
  const double factor = static_cast<double>(elements) / static_cast<double>(time.elements);
  return {elements, factor * time.compress_ns, factor * time.decompress_ns};
}

// A pass of 4 bytes at 900 GB/s, and a launch, as in methods.h: of a V100, lower bounds.
constexpr double kMemoryPassNs = 4 / 900.0, kMemoryLaunchNs = 5000;

}  // namespace

bool names_shipped_costs(const std::string& text) {
  return !is_text(text) && text.find('/') == std::string::npos && !text.ends_with(kExtension);
}

double staging_time_ns(const CompressionSpec& spec, double received) {
  if (spec.method->exchange != Func::all_gather) return 0;
  return 1e3 * spec.gather_us + received * spec.gather_ns;
}

double memory_time_ns(Memory memory, std::uint64_t elements) {
  const MemoryWork work = work_of(memory);
  return work.passes * kMemoryPassNs * static_cast<double>(elements) +
         work.launches * kMemoryLaunchNs;
}

CompressionTime compression_time(const CompressionSpec& spec, std::uint64_t elements) {
  const auto& table = spec.measured;
  if (table.empty()) {
    const CompressionCost& cost = spec.method->cost;
    const auto n = static_cast<double>(elements);
    return {elements, 1e3 * cost.compress_us + n * cost.compress_ns,
            1e3 * cost.decompress_us + n * cost.decompress_ns};
  }
  const auto above = std::find_if(table.begin(), table.end(), [&](const CompressionTime& time) {
    return time.elements >= elements;
  });
  if (above == table.begin()) return scaled(table.front(), elements);
  if (above == table.end()) return scaled(table.back(), elements);
  const CompressionTime &low = above[-1], &high = *above;
  const double share = static_cast<double>(elements - low.elements) /
                       static_cast<double>(high.elements - low.elements);
  return {elements, std::lerp(low.compress_ns, high.compress_ns, share),
          std::lerp(low.decompress_ns, high.decompress_ns, share)};
}

MeasuredTimes read_compression_times(const Setting& file, const std::string& folder,
                                     std::string_view method) {
  const NamedText named = table_named(file, folder);
  const CsvTable table = parse_csv(named.text, named.name);
  const auto columns = columns_in(table);
  if (!columns)
    fail(table.head.mark,
         "the head has no method, elements, compress_ns and decompress_ns; "
         "write the file by `ghostrank calibrate compression --csv FILE`");
  const std::optional<std::size_t> device = table.column("device");
  MeasuredTimes out;
  std::map<std::uint64_t, CompressionTime> times;
  for (const CsvRow& row : table.rows) {
    const std::optional<CompressionTime> time = time_of(row.fields, *columns);
    if (!time)
      fail(row.mark, quote(join(row.fields, ",")) +
                         " is no row of the table; elements are a whole number from "
                         "1, times are nanoseconds an element from 0");
    if (row.fields[(*columns)[0]] != method) continue;
    times[time->elements] = *time;
    if (device && *device < row.fields.size()) out.device = row.fields[*device];
  }
  if (times.empty())
    fail(file.mark, "compression.costs: " + named.name + " has no row of " +
                        quote(std::string(method)) +
                        "; measure it by `ghostrank calibrate compression --method " +
                        std::string(method) + " --csv FILE`");
  for (const auto& [elements, time] : times) out.rows.push_back(time);
  return out;
}

}  // namespace ghostrank
