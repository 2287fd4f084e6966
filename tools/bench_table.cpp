// See bench_table.h.
#include "tools/bench_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "profiles/error.h"
#include "tools/humane.h"

namespace ghostrank {
namespace {

struct FuncFacts {
  Func func;
  std::string_view perf;
  bool blocks;  // the larger buffer has one block per rank
  bool reduces, rooted;
};

constexpr std::array kFuncFacts{
    FuncFacts{Func::all_reduce, "all_reduce_perf", false, true, false},
    FuncFacts{Func::reduce_scatter, "reduce_scatter_perf", true, true, false},
    FuncFacts{Func::all_gather, "all_gather_perf", true, false, false},
    FuncFacts{Func::broadcast, "broadcast_perf", false, false, true},
    FuncFacts{Func::reduce, "reduce_perf", false, true, true},
    FuncFacts{Func::all_to_all, "alltoall_perf", true, false, false},
    FuncFacts{Func::send_recv, "sendrecv_perf", false, false, false},
    FuncFacts{Func::barrier, "barrier_perf", false, false, false},
    FuncFacts{Func::gather, "gather_perf", true, false, true},
    FuncFacts{Func::scatter, "scatter_perf", true, false, true},
    FuncFacts{Func::all_gather_v, "all_gather_v_perf", true, false, false},
    FuncFacts{Func::all_to_all_v, "alltoallv_perf", true, false, false}};

const FuncFacts& facts_of(Func func) {
  return *std::find_if(kFuncFacts.begin(), kFuncFacts.end(),
                       [&](const FuncFacts& f) { return f.func == func; });
}

// all_reduce_perf, AllReduce, all-reduce and allreduce are one word.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c != '_' && c != '-')
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (text.ends_with("perf")) text.resize(text.size() - 4);
  return text;
}

constexpr std::uint64_t kBlockBytes = 16;  // nccl-tests keeps blocks aligned for the GPU
constexpr std::size_t kMostSizes = 10'000;

__attribute__((format(printf, 1, 2))) std::string text_of(const char* format, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return text.data();
}

// Time, bandwidths and wrong elements: the same for out-of-place and in-place.
std::string measured(const BenchRow& row) {
  const std::string wrong =
      row.wrong ? text_of("%6g", static_cast<double>(*row.wrong)) : std::string("   N/A");
  return text_of("  %7s  %6s  %6s  %s", fitted(row.seconds * 1e6, 7).c_str(),
                 fitted(row.algbw_GBps, 6).c_str(), fitted(row.busbw_GBps, 6).c_str(),
                 wrong.c_str());
}

std::string column_names() {
  return text_of("# %10s  %12s  %8s  %6s  %6s  %19s %12s  %21s\n", "", "", "", "", "",
                 "out-of-place", "", "in-place") +
         text_of("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "size",
                 "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
                 "algbw", "busbw", "#wrong") +
         text_of("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "(B)",
                 "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
                 "(GB/s)", "");
}

// "64", or "1 to 64".
std::string span_of(const std::vector<BenchRow>& rows, double BenchRow::*field) {
  if (rows.empty()) return "-";
  const auto [low, high] = std::minmax_element(
      rows.begin(), rows.end(),
      [&](const BenchRow& a, const BenchRow& b) { return a.*field < b.*field; });
  const std::string first = humane_count(std::round(*low.*field));
  const std::string last = humane_count(std::round(*high.*field));
  return first == last ? first : first + " to " + last;
}

std::string verdict_of(const std::vector<BenchRow>& rows) {
  if (rows.empty()) return "nothing was measured";
  if (rows.front().fidelity.modelled) {
    return "modelled: virtual time, nothing was measured on a network";
  }
  const auto bad = std::count_if(rows.begin(), rows.end(),
                                 [](const BenchRow& row) { return !row.fidelity.faithful; });
  if (bad == 0) return "faithful: this machine kept up";
  return "NOT faithful: " + std::to_string(bad) + " of " + std::to_string(rows.size()) +
         " rows, as marked";
}

}  // namespace

BenchType bench_type(const std::string& name) {
  static const std::vector<BenchType> kTypes{
      {"int8", DataType::uint8, false},    {"uint8", DataType::uint8, false},
      {"int32", DataType::int32, true},    {"uint32", DataType::int32, true},
      {"int64", DataType::int64, false},   {"uint64", DataType::int64, false},
      {"half", DataType::bfloat16, false}, {"float", DataType::float32, true},
      {"double", DataType::int64, false},  {"bfloat16", DataType::bfloat16, true},
      {"f8e4m3", DataType::uint8, false},  {"f8e5m2", DataType::uint8, false}};
  std::string known;
  for (const BenchType& type : kTypes) {
    if (type.name == name) return type;
    known += (known.empty() ? "" : ", ") + type.name;
  }
  throw Error("--datatype: there is no type '" + name + "'; known are " + known);
}

std::vector<std::uint64_t> sizes_of(const SizeRange& range) {
  if (range.last < range.first) {
    throw Error("--maxbytes " + std::to_string(range.last) + " is less than --minbytes " +
                std::to_string(range.first) + "; give both, as in -b 8 -e 128M");
  }
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = range.first; size <= range.last;) {
    sizes.push_back(size);
    if (sizes.size() > kMostSizes) {
      throw Error("-b, -e, -f and -i ask for more than " + std::to_string(kMostSizes) +
                  " sizes; use a larger step");
    }
    const std::uint64_t next = range.factor > 1 ? size * range.factor : size + range.increment;
    if (next <= size) break;  // one size, or the end of the numbers
    size = next;
  }
  return sizes;
}

BenchSize bench_size(Func func, std::uint64_t bytes, std::uint32_t element_bytes, int ranks) {
  if (func == Func::barrier) return {};
  const std::uint64_t elements = bytes / element_bytes;
  if (!facts_of(func).blocks) return {elements * element_bytes, elements};
  const auto n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t unit = kBlockBytes / element_bytes;
  const std::uint64_t count = elements / n / unit * unit;
  return {count * n * element_bytes, count};
}

Func bench_func(const std::string& name) {
  std::string known;
  for (const FuncFacts& f : kFuncFacts) {
    const std::string mine(name_of(f.func));
    if (plain(name) == plain(mine) || plain(name) == plain(f.perf)) return f.func;
    known += mine + ", ";
  }
  throw Error("there is no collective or pattern '" + name + "'; known are " + known +
              "and pairs, permutation, incast, bisection");
}

std::string perf_name(Func func) { return std::string(facts_of(func).perf); }

void add_bandwidths(Func func, int ranks, BenchRow& row) {
  if (row.seconds <= 0) return;
  const auto n = static_cast<double>(ranks);
  const double factor = func == Func::all_reduce ? 2 * (n - 1) / n
                        : facts_of(func).blocks  ? (n - 1) / n
                                                 : 1;
  row.algbw_GBps = static_cast<double>(row.size.size) / row.seconds * 1e-9;
  row.busbw_GBps = row.algbw_GBps * factor;
}

std::string shown_redop(const BenchHead& head) {
  return facts_of(head.func).reduces ? head.redop : "none";
}

int shown_root(const BenchHead& head) { return facts_of(head.func).rooted ? head.root : -1; }

std::string fitted(double value, int width) {
  const int digits = value < 1 ? 1 : static_cast<int>(std::floor(std::log10(value))) + 1;
  const int decimals = width - 1 - digits >= 2 ? 2 : width - 1 - digits == 1 ? 1 : 0;
  std::string text = text_of("%.*f", decimals, value);
  if (static_cast<int>(text.size()) > width) text = text_of("%.*f", 0, value);  // 999.996
  if (static_cast<int>(text.size()) > width) text = text_of("%.*e", width >= 7 ? 1 : 0, value);
  return text;
}

std::string bench_header(const BenchHead& head) {
  const SizeRange& s = head.sizes;
  const bool factor = s.factor > 1;
  std::string text =
      "# ghostrank " GHOSTRANK_VERSION ", columns of nccl-tests; ghost ranks, no GPU\n" +
      text_of("# Collective test starting: %s\n", perf_name(head.func).c_str()) +
      text_of(
          "# nThread 1 nGpus 1 minBytes %llu maxBytes %llu step: %llu(%s) warmup iters: %d "
          "iters: %d agg iters: 1 validation: %d graph: 0 unalign: 0\n#\n",
          static_cast<unsigned long long>(s.first), static_cast<unsigned long long>(s.last),
          static_cast<unsigned long long>(factor ? s.factor : s.increment),
          factor ? "factor" : "bytes", head.warmup, head.iterations, head.checks);
  for (const std::string& fact : head.facts) text += "# " + fact + "\n";
  return text + "#\n" + column_names();
}

std::string bench_row(const BenchHead& head, const BenchRow& row) {
  std::string text =
      text_of("%12llu  %12llu  %8s  %6s  %6d", static_cast<unsigned long long>(row.size.size),
              static_cast<unsigned long long>(row.size.count), head.type.c_str(),
              shown_redop(head).c_str(), shown_root(head)) +
      measured(row) + measured(row) + "\n";
  if (row.iterations != head.iterations) {
    text += "#   ^ " + std::to_string(row.iterations) + (row.iterations == 1 ? " iter" : " iters") +
            ": a call has " + humane_count(row.messages) + " messages; -n asks for more\n";
  }
  if (!row.fidelity.faithful) text += "#   ^ NOT faithful: " + row.fidelity.reason + "\n";
  return text;
}

std::string bench_footer(const BenchHead& head, const std::vector<BenchRow>& rows) {
  const std::uint64_t wrong = wrong_elements(rows);
  std::string text = text_of("# Out of bounds values : %llu %s\n",
                             static_cast<unsigned long long>(wrong), wrong > 0 ? "FAILED" : "OK") +
                     text_of("# Avg bus bandwidth    : %g \n#\n", average_busbw(rows));
  if (!rows.empty() && !rows.front().fidelity.modelled) {
    text += "# dilation " + span_of(rows, &BenchRow::dilation) + "\n";
  }
  text += "# a call sent " + span_of(rows, &BenchRow::messages) + " messages, " +
          span_of(rows, &BenchRow::bytes) + " bytes, all ranks together\n";
  return text + "# " + verdict_of(rows) +
         "\n#\n# Collective test concluded: " + perf_name(head.func) + "\n";
}

std::string bench_csv(const BenchHead& head, const std::vector<BenchRow>& rows) {
  std::string text =
      "size,count,type,redop,root,time_us,algbw_GBps,busbw_GBps,wrong,iterations,dilation,"
      "messages,bytes,faithful\n";
  for (const BenchRow& row : rows) {
    text +=
        std::to_string(row.size.size) + "," + std::to_string(row.size.count) + "," + head.type +
        "," + shown_redop(head) + "," + std::to_string(shown_root(head)) +
        text_of(",%.10g,%.10g,%.10g,", row.seconds * 1e6, row.algbw_GBps, row.busbw_GBps) +
        (row.wrong ? std::to_string(*row.wrong) : "") +
        text_of(",%d,%.10g,%.10g,%.10g,", row.iterations, row.dilation, row.messages, row.bytes) +
        (row.fidelity.modelled   ? "modelled"
         : row.fidelity.faithful ? "true"
                                 : "false") +
        "\n";
  }
  return text;
}

std::uint64_t wrong_elements(const std::vector<BenchRow>& rows) {
  std::uint64_t sum = 0;
  for (const BenchRow& row : rows) sum += row.wrong.value_or(0);
  return sum;
}

double average_busbw(const std::vector<BenchRow>& rows) {
  double sum = 0;
  for (const BenchRow& row : rows) sum += row.busbw_GBps;
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

std::string unfaithful_reason(const std::vector<BenchRow>& rows) {
  for (const BenchRow& row : rows) {
    if (!row.fidelity.faithful) return row.fidelity.reason;
  }
  return "";
}

}  // namespace ghostrank
