// The sizes, counts, types and bandwidths of bench: see bench/table.h.
#include <algorithm>
#include <array>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "tools/text/plain_word.h"
#include "tools/verbs/bench/table.h"

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

// As plain_word(); all_reduce_perf is all_reduce, too.
std::string word(std::string_view name) {
  std::string text = plain_word(name);
  if (text.ends_with("perf")) text.resize(text.size() - 4);
  return text;
}

const std::vector<BenchType>& bench_types() {
  static const std::vector<BenchType> kTypes{
      {"int8", DataType::uint8, true},          {"uint8", DataType::uint8, true},
      {"int32", DataType::int32, true},         {"uint32", DataType::int32, true},
      {"int64", DataType::int64, true},         {"uint64", DataType::int64, true},
      {"half", DataType::float16, true},        {"float", DataType::float32, true},
      {"double", DataType::int64, false, true}, {"bfloat16", DataType::bfloat16, true},
      {"f8e4m3", DataType::uint8, false, true}, {"f8e5m2", DataType::uint8, false, true}};
  return kTypes;
}

constexpr std::uint64_t kBlockBytes = 16;  // nccl-tests keeps blocks aligned for the GPU
constexpr std::size_t kMostSizes = 10'000;

// The values that `text` asks for: itself, or all of them.
std::vector<std::string> asked_for(const std::string& text, const std::vector<std::string>& all) {
  return text == "all" ? all : std::vector<std::string>{text};
}

std::vector<GroupRank> roots_of(const std::string& text, int ranks) {
  std::vector<GroupRank> roots;
  if (text == "all") {
    for (GroupRank r = 0; r < ranks; ++r) roots.push_back(r);
    return roots;
  }
  const auto root = parse_integer(text);
  if (!root || *root < 0 || *root >= ranks)
    throw Error("--root " + text + ": ranks are 0 to " + std::to_string(ranks - 1) + ", or all");
  return {static_cast<GroupRank>(*root)};
}

}  // namespace

bool has_root(Func func) { return facts_of(func).rooted; }

BenchType bench_type(const std::string& name) {
  std::string known;
  for (const BenchType& type : bench_types()) {
    if (type.name == name) return type;
    known += (known.empty() ? "" : ", ") + type.name;
  }
  throw Error("--datatype: there is no type '" + name + "'; known are " + known);
}

std::vector<BenchCall> bench_calls(Func func, int ranks, const std::string& types,
                                   const std::string& redops, const std::string& roots) {
  static const std::vector<std::string> kRedops{"sum", "prod", "max", "min", "avg", "mulsum"};
  if (redops != "all" && std::find(kRedops.begin(), kRedops.end(), redops) == kRedops.end())
    throw Error("--op: there is no operation '" + redops +
                "'; known are sum, prod, max, min, avg, "
                "mulsum");
  std::vector<std::string> known;
  for (const BenchType& type : bench_types()) known.push_back(type.name);
  const FuncFacts& facts = facts_of(func);
  const std::vector<GroupRank> all_roots = roots_of(roots, ranks);
  std::vector<BenchCall> calls;
  for (const std::string& type : asked_for(types, known))
    for (const std::string& redop :
         facts.reduces ? asked_for(redops, kRedops) : std::vector<std::string>{"none"})
      for (const GroupRank root : facts.rooted ? all_roots : std::vector<GroupRank>{0})
        calls.push_back({bench_type(type).name, redop, root});
  return calls;
}

std::vector<std::uint64_t> sizes_of(const SizeRange& range) {
  if (range.last < range.first) {
    throw Error("--maxbytes " + std::to_string(range.last) + " is less than --minbytes " +
                std::to_string(range.first) + "; give both, as in -b 8 -e 128M");
  }
  if (range.first == 0 && range.factor > 1 && range.last > 0)
    throw Error("-b 0 stays 0 however often -f multiplies it; give -i, or a larger -b");
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = range.first; size <= range.last;) {
    sizes.push_back(size);
    if (sizes.size() > kMostSizes) {
      throw Error("-b, -e, -f and -i ask for more than " + std::to_string(kMostSizes) +
                  " sizes; use a larger step");
    }
    const std::uint64_t next = range.factor > 1 ? size * range.factor : size + range.increment;
    if (next <= size) break;  // one size, or the sum has overflowed
    size = next;
  }
  return sizes;
}

BenchSize bench_size(Func func, std::uint64_t bytes, std::uint32_t element_bytes, int ranks) {
  if (func == Func::barrier) return {};
  const std::uint64_t elements = bytes / element_bytes;
  if (!facts_of(func).blocks) return {elements * element_bytes, elements};
  const std::uint64_t n = ranks;
  const std::uint64_t unit = kBlockBytes / element_bytes;
  const std::uint64_t count = elements / n / unit * unit;
  return {count * n * element_bytes, count};
}

Func bench_func(const std::string& name) {
  std::string known;
  for (const FuncFacts& f : kFuncFacts) {
    const std::string mine(name_of(f.func));
    if (word(name) == word(mine) || word(name) == word(f.perf)) return f.func;
    known += mine + ", ";
  }
  throw Error("there is no collective or pattern '" + name + "'; known are " + known +
              "and pairs, permutation, incast, bisection");
}

std::string perf_name(Func func) { return std::string(facts_of(func).perf); }

void add_bandwidths(Func func, int ranks, BenchRow& row) {
  if (row.seconds <= 0) return;
  const double n = ranks;
  const double factor = func == Func::all_reduce ? 2 * (n - 1) / n
                        : facts_of(func).blocks  ? (n - 1) / n
                                                 : 1;
  row.algbw_GBps = static_cast<double>(row.size.size) / row.seconds * 1e-9;
  row.busbw_GBps = row.algbw_GBps * factor;
}

std::string shown_redop(Func func, const BenchCall& call) {
  return facts_of(func).reduces ? call.redop : "none";
}

int shown_root(Func func, const BenchCall& call) { return facts_of(func).rooted ? call.root : -1; }

}  // namespace ghostrank
