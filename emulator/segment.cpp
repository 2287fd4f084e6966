#include "emulator/segment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "emulator/common/blob.h"
#include "profiles/device/compute.h"

namespace ghostrank {
namespace {

constexpr double kMostCritical = 0.01, kMostRateError = 0.01, kMostHeldUp = 0.01, kMostBusy = 0.80;

// Why a thread with work due does not run: its name in Fidelity::reason, and the remedy.
struct Cause {
  std::string_view what;
  const char* remedy;
};
constexpr std::array kCauses = {
    Cause{"waiting for a core", "stop other programs on this machine"},
    Cause{"out of its CPU quota", "give its control group more CPU time (cpu.max)"},
    Cause{"stopped or frozen", "find what stops this process or this machine"},
};

// A thread without quota and one without a free core are both runnable, so in the run queue; a
// stopped thread is not.
const Cause& cause_of(const SegmentSummary& sum) {
  constexpr double kMostOf = 0.5;
  if (sum.throttled > kMostOf * sum.held_up) return kCauses[1];
  if (sum.queued >= 0 && sum.queued < kMostOf * sum.held_up) return kCauses[2];
  return kCauses[0];
}

std::string rounded_percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share < 0.1 ? "%.2f %%" : "%.0f %%", share * 100);
  return text;
}

template <typename Archive, typename Report>
void exchange(Archive&& field, Report& r) {
  field(r.host.index), field(r.host.hostname), field(r.host.provider), field(r.host.transport);
  field(r.host.ranks), field(r.host.rss_bytes), field(r.host.cpu_seconds);
  field(r.host.name), field(r.host.cores), field(r.host.bound), field(r.host.cores_note);
  field(r.host.cpu), field(r.host.kernel), field(r.host.libfabric);
  field(r.lateness_ns), field(r.end), field(r.until), field(r.wall_behind), field(r.held_up),
      field(r.taken), field(r.queued), field(r.throttled), field(r.median_error),
      field(r.median_seconds), field(r.loop_busy);
  field(r.paced), field(r.pace_error), field(r.events), field(r.messages), field(r.checked),
      field(r.wrong);
  field(r.spans_dropped), field(r.strays), field(r.spilled), field(r.ledger);
  field(r.to_outside), field(r.from_outside);
  field(r.spilled_by_nic.rows()), field(r.spill_paths), field(r.intra), field(r.packets),
      field(r.troubles), field(r.links), field(r.fluids), field(r.gaps), field(r.helpers);
}

void put(BlobWriter& w, const ByteCounts& counts) {
  for (const auto& count : {counts.tx_bytes, counts.rx_bytes})
    w.put(count.has_value()), w.put(count.value_or(0));
}

ByteCounts get_counts(BlobReader& r) {
  ByteCounts counts;
  for (auto* count : {&counts.tx_bytes, &counts.rx_bytes}) {
    bool known = false;
    std::uint64_t value = 0;
    r.get(known), r.get(value);
    if (known) *count = value;
  }
  return counts;
}

InterfaceReport get_interface(BlobReader& r) {
  InterfaceReport i;
  r.get(i.host), r.get(i.network_namespace), r.get(i.device), r.get(i.loopback);
  const ByteCounts total = get_counts(r);
  i.tx_bytes = total.tx_bytes;
  i.rx_bytes = total.rx_bytes;
  std::uint64_t count = 0;
  for (r.get(count); count > 0 && !r.bad(); --count) i.iterations.push_back(get_counts(r));
  for (r.get(count); count > 0 && !r.bad(); --count) {
    auto& [name, value] = i.counters.emplace_back();
    r.get(name), r.get(value);
  }
  return i;
}

template <typename T>
void move_to_end(std::vector<T>& from, std::vector<T>& to) {
  if (to.empty()) to.swap(from);
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  from = std::vector<T>();  // assigning {} would keep the capacity
}

}  // namespace

void SegmentReport::add(Shard& shard, std::vector<Span> shard_spans) {
  const ShardStats& s = shard.stats();
  SegmentReport part;
  part.lateness_ns = s.lateness_ns;
  part.end = s.end;
  part.until = s.until;
  part.wall_behind = s.wall_behind;
  // A shard without events rested, as while another job plays alone. Its time is too short for
  // shares of it.
  if (s.events > 0) {
    const double wall = std::max(s.wall_seconds, 1e-9);
    part.held_up = s.held_up_seconds / wall;
    part.taken = s.taken_seconds / wall;
    part.queued = s.run_queue_seconds < 0 ? -1 : s.run_queue_seconds / wall;
    part.loop_busy = std::max(0.0, 1 - s.idle_seconds / wall);
  }
  part.paced = s.paced;
  part.pace_error = s.pace_error;
  part.events = s.events;
  part.messages = s.messages;
  part.checked = s.checked;
  part.wrong = s.wrong;
  part.spans_dropped = s.spans_dropped;
  part.rows = s.rows;
  part.ledger = shard.ledger().rows();
  part.intra = shard.ledger().intra();
  part.to_outside = s.to_outside;
  part.from_outside = s.from_outside;
  part.packets = s.packets;
  part.troubles = s.troubles;
  part.links = s.links;
  part.link_times = s.link_times;
  part.fluids = s.fluids;
  part.helpers = s.helpers;
  part.spilled = shard.ledger().spilled() ? 1 : 0;
  part.spilled_by_nic = shard.ledger().spilled_by_nic();
  part.spill_paths.push_back(shard.ledger().spill_path());
  part.spans = std::move(shard_spans);
  part.gaps.push_back(s.gaps);
  merge(part);
}

void SegmentReport::merge(SegmentReport& other) {
  lateness_ns.merge(other.lateness_ns);
  end = later(end, other.end);
  until = std::max(until, other.until);
  wall_behind = std::max(wall_behind, other.wall_behind);
  held_up = std::max(held_up, other.held_up);
  taken = std::max(taken, other.taken);
  for (double SegmentSummary::*share : {&SegmentSummary::queued, &SegmentSummary::throttled})
    this->*share = this->*share < 0 || other.*share < 0 ? -1 : std::max(this->*share, other.*share);
  loop_busy = std::max(loop_busy, other.loop_busy);
  paced += other.paced;
  pace_error += other.pace_error;
  events += other.events;
  messages += other.messages;
  checked += other.checked;
  wrong += other.wrong;
  spans_dropped += other.spans_dropped;
  strays += other.strays;
  if (rows.size() < other.rows.size()) rows.resize(other.rows.size());
  for (std::size_t i = 0; i < other.rows.size(); ++i) {
    rows[i].calls += other.rows[i].calls;
    rows[i].bytes += other.rows[i].bytes;
    rows[i].total.merge(other.rows[i].total);
    rows[i].total_late.merge(other.rows[i].total_late);
    rows[i].seconds.merge(other.rows[i].seconds);
    rows[i].without_lateness.merge(other.rows[i].without_lateness);
  }
  move_to_end(other.ledger, ledger);  // no duplicate keys: a source NIC has one shard
  spilled += other.spilled;
  stalls += other.stalls;
  if (spilled_by_nic.size() < other.spilled_by_nic.size())
    spilled_by_nic.resize(other.spilled_by_nic.size());
  for (const Nic i : other.spilled_by_nic.keys()) {
    spilled_by_nic[i].sent += other.spilled_by_nic[i].sent;
    spilled_by_nic[i].received += other.spilled_by_nic[i].received;
  }
  move_to_end(other.spill_paths, spill_paths);
  if (intra.size() < other.intra.size()) intra.resize(other.intra.size());
  for (std::size_t row = 0; row < other.intra.size(); ++row) intra[row] += other.intra[row];
  to_outside += other.to_outside;
  from_outside += other.from_outside;
  packets.merge(other.packets);
  troubles.merge(other.troubles);
  fluids += other.fluids;
  link_times.merge(std::move(other.link_times));
  if (links.size() < other.links.size()) links.resize(other.links.size());
  for (std::size_t i = 0; i < other.links.size(); ++i) links[i].merge(other.links[i]);
  move_to_end(other.helpers, helpers);
  move_to_end(other.spans, spans);
  move_to_end(other.gaps, gaps);
}

std::string SegmentReport::to_blob() const {
  BlobWriter w;
  exchange([&](const auto& field) { w.put(field); }, *this);
  w.put(static_cast<std::uint64_t>(rows.size()));
  for (const RowStats& row : rows) {
    w.put(row.calls), w.put(row.bytes), w.put(row.total), w.put(row.total_late);
    for (const SampledSeconds* sample : {&row.seconds, &row.without_lateness})
      SampledSeconds::exchange(*sample, [&](const auto& field) { w.put(field); });
  }
  w.put(static_cast<std::uint64_t>(interfaces.size()));
  for (const InterfaceReport& i : interfaces) {
    w.put(i.host), w.put(i.network_namespace), w.put(i.device), w.put(i.loopback);
    put(w, {i.tx_bytes, i.rx_bytes});
    w.put(static_cast<std::uint64_t>(i.iterations.size()));
    for (const ByteCounts& counts : i.iterations) put(w, counts);
    w.put(static_cast<std::uint64_t>(i.counters.size()));
    for (const auto& [name, value] : i.counters) w.put(name), w.put(value);
  }
  w.put(static_cast<std::uint64_t>(spans.size()));
  for (const Span& s : spans) {
    w.put(s.rank), w.put(s.host), w.put(s.stream), w.put(s.slot), w.put(s.kind), w.put(s.label);
    w.put(s.start), w.put(s.duration), w.put(s.bytes), w.put(s.call), w.put(s.part);
  }
  return w.bytes();
}

std::optional<SegmentReport> SegmentReport::from_blob(std::string_view blob) {
  SegmentReport report;
  BlobReader r(blob);
  std::uint64_t count = 0;
  exchange([&](auto& field) { r.get(field); }, report);
  for (r.get(count); count > 0 && !r.bad(); --count) {
    RowStats row;
    r.get(row.calls), r.get(row.bytes), r.get(row.total), r.get(row.total_late);
    for (SampledSeconds* sample : {&row.seconds, &row.without_lateness}) {
      SampledSeconds::exchange(*sample, [&](auto& field) { r.get(field); });
      if (!sample->valid()) return std::nullopt;
    }
    report.rows.push_back(std::move(row));
  }
  for (r.get(count); count > 0 && !r.bad(); --count) {
    report.interfaces.push_back(get_interface(r));
  }
  for (r.get(count); count > 0 && !r.bad(); --count) {
    Span s;
    r.get(s.rank), r.get(s.host), r.get(s.stream), r.get(s.slot), r.get(s.kind), r.get(s.label);
    r.get(s.start), r.get(s.duration), r.get(s.bytes), r.get(s.call), r.get(s.part);
    report.spans.push_back(std::move(s));
  }
  if (!r.complete()) return std::nullopt;
  return report;
}

bool SegmentReport::could_be_of(const JobSizes& job) const {
  const auto is_nic = [&](Nic nic) { return nic >= Nic(0) && nic.value() < job.nics; };
  return rows.size() <= job.rows && intra.size() <= job.rows && spilled_by_nic.size() <= job.nics &&
         std::all_of(ledger.begin(), ledger.end(),
                     [&](const LedgerRow& row) {
                       return is_nic(row.key.source_nic) && is_nic(row.key.target_nic) &&
                              row.key.row < job.rows;
                     }) &&
         std::all_of(helpers.begin(), helpers.end(), [&](const HelperCount& helper) {
           return helper.party >= WorldParty(0) && helper.party.value() < job.parties;
         });
}

std::string remedy_for(const std::string& reason, const std::string& dilation) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", or ") + what; };
  std::size_t causes = 0;
  for (const Cause& cause : kCauses) {
    if (reason.find(cause.what) == std::string::npos) continue;
    add(cause.remedy);
    ++causes;
  }
  const auto parts = static_cast<std::size_t>(std::count(reason.begin(), reason.end(), ';')) + 1;
  const bool nothing_else =
      causes == parts && std::any_of(kCauses.begin(), kCauses.end(), [&](const Cause& cause) {
        return reason.starts_with(cause.what);
      });
  if (!nothing_else) add("raise " + dilation);
  return text + ", or accept it with --allow-unfaithful";
}

namespace {

// How far predicted step times of such a job were from measured ones on its device; of several
// jobs, of the farthest. 0: unknown.
double model_error(const JobSpec& spec) {
  double most = 0;
  for (std::size_t job = 0; job < std::max<std::size_t>(1, spec.jobs.size()); ++job) {
    const JobSpec& own = spec.of_job(job);
    const bool other =
        own.parallel.framework != Framework::megatron && own.device.step_time_error_others > 0;
    most = std::max(most, other ? own.device.step_time_error_others : own.device.step_time_error);
  }
  return most;
}

}  // namespace

Fidelity judge(const SegmentSummary& sum, const JobSpec& spec, double dilation, bool wired) {
  Fidelity f;
  f.valid_for = {"bytes", "order"};
  f.assumed_compute = compute_calibration(spec) == Calibration::assumed;
  if (spec.model && !spec.model->measured && !f.assumed_compute) f.model_error = model_error(spec);
  const auto valid_for_time = [&] {
    if (!f.assumed_compute) f.valid_for.emplace_back("step_time");
  };
  if (spec.fabric.kind == FabricKind::virtual_time) {
    f.modelled = f.faithful = true;
    valid_for_time();
    return f;
  }
  if (sum.end.at == 0) {  // no time passed, so nothing could be late
    f.faithful = true;
    valid_for_time();
    return f;
  }
  f.lateness_us_p50 = static_cast<double>(sum.lateness_ns.quantile(0.5)) * 1e-3;
  f.lateness_us_p99 = static_cast<double>(sum.lateness_ns.quantile(0.99)) * 1e-3;
  f.lateness_us_max = static_cast<double>(sum.lateness_ns.max()) * 1e-3;
  // In memory every delay that a message met is known, so slip bounds the error. Over a network a
  // host that is held up between two reads of its clock delays messages unseen.
  f.critical_lateness = sum.median_error;
  if (wired) f.critical_lateness += sum.taken;
  if (wired && sum.median_seconds > 0)
    f.critical_lateness =
        std::max(f.critical_lateness, seconds(sum.wall_behind) / sum.median_seconds);
  f.rate_error = sum.paced > 0 ? std::abs(seconds(sum.pace_error)) / seconds(sum.paced) : 0;
  f.run_queue_wait = sum.held_up;
  f.queued = sum.queued;
  f.throttled = sum.throttled;
  f.loop_busy = sum.loop_busy;
  const auto say = [&](bool bad, const std::string& what, double value, double limit) {
    if (bad)
      f.reason += (f.reason.empty() ? "" : "; ") + what + " " + rounded_percent(value) +
                  " (at most " + rounded_percent(limit) + ")";
  };
  say(f.critical_lateness > kMostCritical, "lateness on the critical path", f.critical_lateness,
      kMostCritical);
  if (!f.reason.empty() && !wired && sum.held_up > kMostHeldUp)
    f.reason += ", " + std::string(cause_of(sum).what) + " " + rounded_percent(sum.held_up);
  say(f.rate_error > kMostRateError, "paced rate off by", f.rate_error, kMostRateError);
  say(wired && sum.held_up > kMostHeldUp, std::string(cause_of(sum).what), sum.held_up,
      kMostHeldUp);
  say(f.loop_busy > kMostBusy, "loop busy", f.loop_busy, kMostBusy);
  f.faithful = f.reason.empty();
  if (f.faithful) {
    valid_for_time();
    if (wired && dilation <= 1) f.valid_for.push_back("congestion");
  }
  return f;
}

}  // namespace ghostrank
