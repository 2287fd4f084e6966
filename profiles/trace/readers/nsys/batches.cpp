#include "profiles/trace/readers/nsys/batches.h"

#include <algorithm>
#include <utility>

#include "profiles/trace/readers/formats.h"

namespace ghostrank {

void NsysBatch::extend(Picoseconds from, Picoseconds to, std::int64_t on) {
  if (first < 0) stream = on;
  first = first < 0 ? from : std::min(first, from);
  last = std::max(last, to);
}

NsysBatches::NsysBatches(std::vector<NsysRange> ranges, Trace& trace) {
  std::stable_sort(ranges.begin(), ranges.end(), [](const NsysRange& a, const NsysRange& b) {
    return std::pair(a.thread, a.start) < std::pair(b.thread, b.start);
  });
  std::uint64_t depth = 0;      // of ncclGroupStart on this thread
  std::int64_t call_until = 0;  // end of the last call on this thread
  for (const NsysRange& range : ranges) {
    if (batches.empty() || batches.back().thread != range.thread) depth = call_until = 0;
    const bool call = range.kind == NsysRange::Kind::call;
    if (call && range.start < call_until) {
      ++trace.left_out["calls of NCCL inside another call"];
      continue;
    }
    // A group may have begun before the capture.
    if (depth == 0) batches.push_back({range.thread, range.start, range.end, calls.size()});
    NsysBatch& batch = batches.back();
    batch.end = std::max(batch.end, range.end);
    if (range.kind == NsysRange::Kind::group_start) ++depth;
    if (range.kind == NsysRange::Kind::group_end && depth > 0) --depth;
    if (!call) {
      ++trace.used;
      continue;
    }
    call_until = range.end;
    if (!range.payload[NcclField::comm] || !range.payload[NcclField::bytes]) {
      ++trace.left_out["calls of NCCL whose payload lacks communicator or size"];
      continue;
    }
    calls.push_back(range);
    ++batch.calls;
  }
}

void NsysBatches::read_launches(SqliteFile& file, bool all, Trace& trace) {
  if (!file.has("CUPTI_ACTIVITY_KIND_RUNTIME")) return;
  SqliteRows rows(file, "CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "globalTid", "correlationId"}, 3);
  while (rows.next()) {
    if (rows.is_null(1) || rows.is_null(2)) continue;
    const std::int64_t start = rows.integer(0, 0, kMostNsysNanos);
    const std::uint64_t thread = rows.bits(1);
    auto batch = std::upper_bound(
        batches.begin(), batches.end(), std::pair(thread, start),
        [](const auto& at, const NsysBatch& one) { return at < std::pair(one.thread, one.start); });
    Launch launch{thread >> 24, rows.integer(2, 0, kMostNsysId), start};
    if (batch != batches.begin()) {
      --batch;
      if (batch->thread == thread && start <= batch->end && batch->calls > 0)
        launch.batch = static_cast<std::uint32_t>(batch - batches.begin());
    }
    if (all || launch.batch != kNoIndex) launches_.push_back(launch);
  }
  if (rows.row() > 0) trace.left_out["calls of the host to CUDA"] += rows.row();
  std::sort(launches_.begin(), launches_.end(), [](const Launch& a, const Launch& b) {
    return std::pair(a.process, a.correlation) < std::pair(b.process, b.correlation);
  });
}

const NsysBatches::Launch* NsysBatches::launch(std::uint64_t process,
                                               std::int64_t correlation) const {
  const auto at =
      std::lower_bound(launches_.begin(), launches_.end(), std::pair(process, correlation),
                       [](const Launch& one, const auto& wanted) {
                         return std::pair(one.process, one.correlation) < wanted;
                       });
  const bool found =
      at != launches_.end() && at->process == process && at->correlation == correlation;
  return found ? &*at : nullptr;
}

NsysBatch* NsysBatches::launched(std::uint64_t process, std::int64_t correlation) {
  const Launch* found = launch(process, correlation);
  return found && found->batch != kNoIndex ? &batches[found->batch] : nullptr;
}

std::int64_t NsysBatches::launched_at(std::uint64_t process, std::int64_t correlation) const {
  const Launch* found = launch(process, correlation);
  return found ? found->start : -1;
}

}  // namespace ghostrank
