#include "tools/calibrate/nsys_kernels.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/trace/readers/nsys/ranges.h"
#include "tools/calibrate/torch_ops.h"

namespace ghostrank {
namespace {

constexpr std::string_view kSizes = ", sizes = [";
constexpr std::int64_t kAnyInteger = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMostKernels = 20'000'000;

// A range, or a launch: a moment on a thread.
struct OnThread {
  std::uint64_t thread = 0;
  std::int64_t start = 0, end = 0;
};

bool begins_before(const OnThread& a, const OnThread& b) {
  if (a.thread != b.thread) return a.thread < b.thread;
  return a.start != b.start ? a.start < b.start : a.end > b.end;
}

// "aten::mm, seq = 4, sizes = [[64, 32], [], [32, 16]], input_op_ids = [...]". Empty: it has no
// sizes, or they are no lists of numbers.
std::optional<TorchOp> op_named(std::string_view text) {
  const std::size_t at = text.find(kSizes), comma = text.find(',');
  if (at == std::string_view::npos) return std::nullopt;
  TorchOp op;
  op.name = text.substr(0, comma);
  std::string_view rest = text.substr(at + kSizes.size());
  while (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    TorchOperand& operand = op.operands.emplace_back();
    for (std::string_view sizes = rest.substr(1, end - 1); !sizes.empty();) {
      const std::size_t next = std::min(sizes.find(", "), sizes.size());
      const auto size = parse_integer(sizes.substr(0, next));
      if (!size || *size < 0) return std::nullopt;
      operand.dims.push_back(static_cast<double>(*size));
      sizes.remove_prefix(std::min(next + 2, sizes.size()));
    }
    operand.elements = elements_of(operand.dims);
    rest.remove_prefix(end + 1);
    if (rest.starts_with(", ")) rest.remove_prefix(2);
  }
  if (!rest.starts_with(']')) return std::nullopt;
  return op;
}

class NsysReader {
 public:
  void read(const std::string& path) {
    SqliteFile file(path);
    check_nsys_version(file);
    ops_.clear();
    ranges_.clear();
    launches_.clear();
    launched_.clear();
    kernels_.clear();
    names_.clear();
    read_gpu(file);
    read_ranges(file);
    if (ranges_.empty())
      throw Error(path +
                  ": no range of NVTX names an op with its sizes; record with "
                  "torch.autograd.profiler.emit_nvtx(record_shapes=True)");
    read_launches(file);
    read_kernels(file);
    if (kernels_.empty())
      throw Error(path + ": there are no kernels of a device; profile with nsys --trace=cuda,nvtx");
    add_gaps(kernels_);
    take_kernels();
  }

  RecordedKernels result() { return rows_.take(std::move(gpu_)); }

 private:
  void read_gpu(SqliteFile& file) {
    if (!gpu_.empty() || !file.has("TARGET_INFO_GPU")) return;
    SqliteRows rows(file, "TARGET_INFO_GPU", {"name"}, 1);
    if (rows.next()) gpu_ = rows.text(0);
  }

  void read_ranges(SqliteFile& file) {
    if (!file.has("NVTX_EVENTS")) return;
    std::unordered_map<std::int64_t, std::string> texts;
    {
      SqliteRows rows(file, "StringIds", {"id", "value"}, 2);
      while (rows.next())
        if (const std::string_view text = rows.text(1); text.find(kSizes) != std::string_view::npos)
          texts.emplace(rows.integer(0, -kAnyInteger, kAnyInteger), text);
    }
    enum { kStart, kEnd, kText, kTextId, kThread };
    SqliteRows rows(file, "NVTX_EVENTS", {"start", "end", "text", "textId", "globalTid"}, 5);
    while (rows.next()) {
      if (rows.is_null(kEnd)) continue;  // was open when the capture stopped
      std::string_view text = rows.text(kText);
      if (text.empty() && !rows.is_null(kTextId)) {
        const auto at = texts.find(rows.integer(kTextId, -kAnyInteger, kAnyInteger));
        if (at != texts.end()) text = at->second;
      }
      auto op = op_named(text);
      if (!op) continue;
      Range range;
      range.start = rows.integer(kStart, 0, kMostNsysNanos);
      range.end = rows.integer(kEnd, range.start, kMostNsysNanos);
      range.thread = rows.bits(kThread);
      range.op = ops_.size();
      ranges_.push_back(range);
      ops_.push_back(std::move(*op));
    }
    std::sort(ranges_.begin(), ranges_.end(), begins_before);
  }

  // Which op launched what, by process and correlation.
  void read_launches(SqliteFile& file) {
    if (!file.has("CUPTI_ACTIVITY_KIND_RUNTIME")) return;
    SqliteRows rows(file, "CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "globalTid", "correlationId"},
                    3);
    while (rows.next()) {
      if (rows.is_null(1) || rows.is_null(2)) continue;  // no kernel names it
      Launch launch;
      launch.start = launch.end = rows.integer(0, 0, kMostNsysNanos);
      launch.thread = rows.bits(1);
      launch.correlation = rows.integer(2, 0, kMostNsysId);
      launches_.push_back(launch);
    }
    std::sort(launches_.begin(), launches_.end(), begins_before);
    std::vector<const Range*> open;
    std::size_t next = 0;
    for (const Launch& launch : launches_) {
      for (; next < ranges_.size() && !begins_before(launch, ranges_[next]); ++next)
        open.push_back(&ranges_[next]);
      while (!open.empty() &&
             (open.back()->thread != launch.thread || open.back()->end < launch.start))
        open.pop_back();
      if (!open.empty())
        launched_[{launch.thread >> 24, launch.correlation}] =
            static_cast<std::int64_t>(open.back()->op);
    }
  }

  void read_kernels(SqliteFile& file) {
    if (!file.has("CUPTI_ACTIVITY_KIND_KERNEL")) return;
    enum { kStart, kEnd, kDevice, kStream, kPid, kCorrelation, kName };
    SqliteRows rows(
        file, "CUPTI_ACTIVITY_KIND_KERNEL",
        {"start", "end", "deviceId", "streamId", "globalPid", "correlationId", "demangledName"}, 7);
    std::vector<std::int64_t> name_of;
    while (rows.next()) {
      if (kernels_.size() == kMostKernels)
        throw Error(file.path() + ": more than " + std::to_string(kMostKernels) +
                    " kernels; export a part of the report");
      RecordedKernel kernel;
      const std::int64_t start = rows.integer(kStart, 0, kMostNsysNanos);
      kernel.start = static_cast<double>(start) * 1e-3;
      kernel.duration =
          static_cast<double>(rows.integer(kEnd, start, kMostNsysNanos) - start) * 1e-3;
      kernel.stream =
          rows.integer(kDevice, 0, 1 << 20) << 32 | rows.integer(kStream, 0, kMostNsysId);
      if (!rows.is_null(kCorrelation)) {
        const auto at =
            launched_.find({rows.bits(kPid) >> 24, rows.integer(kCorrelation, 0, kMostNsysId)});
        if (at != launched_.end()) kernel.op = at->second;
      }
      name_of.push_back(rows.integer(kName, -kAnyInteger, kAnyInteger));
      names_[name_of.back()];
      kernels_.push_back(std::move(kernel));
    }
    SqliteRows strings(file, "StringIds", {"id", "value"}, 2);
    while (strings.next()) {
      const auto at = names_.find(strings.integer(0, -kAnyInteger, kAnyInteger));
      if (at != names_.end()) at->second = strings.text(1);
    }
    for (std::size_t i = 0; i < kernels_.size(); ++i) kernels_[i].name = names_[name_of[i]];
  }

  void take_kernels() {
    std::map<std::int64_t, std::vector<const RecordedKernel*>> by_op;
    for (const RecordedKernel& kernel : kernels_) {
      if (kernel.op >= 0)
        by_op[kernel.op].push_back(&kernel);
      else
        rows_.leave_out("kernels without an op that has shapes");
    }
    for (const auto& [number, kernels] : by_op)
      take_op(ops_[static_cast<std::size_t>(number)], kernels, rows_);
  }

  struct Range : OnThread {
    std::size_t op = 0;  // index into ops_
  };
  struct Launch : OnThread {
    std::int64_t correlation = 0;
  };
  std::vector<TorchOp> ops_;
  std::vector<Range> ranges_;
  std::vector<Launch> launches_;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::int64_t> launched_;
  std::vector<RecordedKernel> kernels_;
  std::unordered_map<std::int64_t, std::string> names_;
  std::string gpu_;
  KernelRows rows_;
};

}  // namespace

RecordedKernels read_nsys_kernels(const std::vector<std::string>& paths) {
  NsysReader reader;
  for (const std::string& path : paths) reader.read(path);
  return reader.result();
}

}  // namespace ghostrank
