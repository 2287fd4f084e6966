// See run_facts.h.
#include "tools/report/run_facts.h"

#include "emulator/result/figures.h"
#include "profiles/input/keys.h"
#include "tools/report/network_text.h"
#include "tools/report/nic_traffic.h"
#include "tools/report/result_json.h"
#include "tools/report/tensor_report.h"
#include "tools/text/humane.h"
#include "tools/text/statistics.h"

namespace ghostrank {
namespace {

std::string gigabytes(double gigabytes_per_second) {
  return significant(gigabytes_per_second, 3) + " GB/s";
}

std::vector<double> over(const Result& result, double IterationReport::*field) {
  std::vector<double> samples;
  for (const IterationReport& i : result.iterations) samples.push_back(i.*field);
  return samples;
}

bool valid(const Result& result, std::string_view figure) {
  return is_valid(result.fidelity.figures, figure);
}

// "p99 of the step (12 %), time/call of allreduce dp (540 %)": what the table leaves out
// because this machine may have put it off by more than its limit, and by how much.
std::string left_out(const Result& result) {
  std::string text;
  const auto add = [&](const std::string& what, double error) {
    const std::string by = error >= kErrorUnknown ? "unknown" : humane_percent(error);
    if (error > Figure::kMostError) text += (text.empty() ? "" : ", ") + what + " (" + by + ")";
  };
  for (const Figure& f : result.fidelity.figures)
    if (f.name != "step_time.median") add(f.name, f.error);  // the first line judges that
  for (const CollectiveReport& c : result.collectives) {
    if (c.seconds_median <= 0) continue;
    add("time/call of " + c.op + " " + c.group, c.seconds_error);
    if (c.op != "send_recv") add("algbw of " + c.op + " " + c.group, c.bandwidth_error);
  }
  return text;
}

std::string step_line(const Result& result) {
  const std::vector<double> seconds = over(result, &IterationReport::seconds);
  const Summary s = result.deterministic ? summarize_exact(seconds) : summarize(seconds);
  if (!s.median) return "no iteration was completed";
  std::string text = "median " + humane_seconds(*s.median);
  const bool varies = s.cv.value_or(0) > 0;
  if (result.deterministic && varies) text += ", mean " + humane_seconds(*s.mean);
  if (s.ci95 && valid(result, "step_time.mean") && valid(result, "step_time.cv")) {
    text += ", mean " + humane_seconds(*s.mean) + " [" + humane_seconds(s.ci95->first) + ", " +
            humane_seconds(s.ci95->second) + "] (95 %)";
  }
  if (s.p99 && valid(result, "step_time.p99")) text += ", p99 " + humane_seconds(*s.p99);
  text += ", " + humane_count(iterations_played(result), "iteration");
  if (result.open_end && result.open_end->one_in > 1)
    text += " (figures of " + humane_count(static_cast<double>(seconds.size())) + ")";
  if (s.cv && (varies || !result.deterministic) && valid(result, "step_time.cv"))
    text += ", cv " + humane_percent(*s.cv);
  if (result.deterministic) text += ", deterministic";
  if (result.fidelity.model_error > 0)
    text += ", ± " + humane_percent(result.fidelity.model_error) + " of the compute model";
  if (result.fidelity.assumed_compute) text += "; compute is assumed, not calibrated";
  return text;
}

std::string throughput_line(const Result& result, double step) {
  std::string text;
  if (result.samples_per_iteration > 0) {
    text = significant(result.samples_per_iteration / step) + " samples/s";
  }
  if (result.flops_per_iteration > 0 && result.ranks > 0) {
    text += (text.empty() ? "" : ", ") +
            significant(result.flops_per_iteration / step / result.ranks * 1e-12) +
            " TFLOP/s per GPU (model FLOPs)";
  }
  if (const auto mfu = model_flops_utilization(result, step))
    text += ", MFU " + humane_percent(*mfu);
  return text;
}

// ", rx_dropped 12": counters that grew and report trouble. Byte and packet counts are no trouble,
// and drivers' own counters ("ethtool.NAME") are left out.
std::string troubles(const InterfaceReport& interface) {
  std::string text;
  for (const auto& [name, grown] : interface.counters) {
    const bool volume = name.ends_with("_bytes") || name.ends_with("_packets");
    const bool common = name.find('.') == std::string::npos;
    if (grown > 0 && common && !volume) text += ", " + name + " " + std::to_string(grown);
  }
  return text;
}

// "1,000 sent, 990 received, 10 lost on purpose, 0 dropped by the kernel". Leaves out rare kinds
// that did not occur.
std::string packet_line(const PacketCounts& p) {
  const auto count = [](std::uint64_t n) { return humane_count(static_cast<double>(n)); };
  std::string text = count(p.sent) + " sent, " + count(p.received) + " received, " +
                     count(p.lost_on_purpose) + " lost on purpose";
  const auto add = [&](std::uint64_t n, const char* what) {
    if (n > 0) text += ", " + count(n) + what;
  };
  add(p.sent_again, " sent again to the switch");
  add(p.doubled_on_purpose, " doubled");
  add(p.delayed_on_purpose, " delayed");
  text += p.unreadable > 0 ? ", dropped by the kernel: unreadable"
                           : ", " + count(p.dropped) + " dropped by the kernel";
  add(p.refused, " not let out by it");
  add(p.strays, " strays");
  return text;
}

std::string switch_line(const SwitchReport& sw, double wall_seconds) {
  std::string text = sw.target + " at " + sw.address;
  if (sw.processor_seconds && wall_seconds > 0)
    text += ", busy " + humane_percent(*sw.processor_seconds / wall_seconds) + " of a core";
  if (sw.memory_bytes > 0)
    text += "; memory held: " + humane_bytes(static_cast<double>(sw.memory_bytes));
  return text;
}

// "failed 2 times; 3 agreements to send again; given up at 1.2 s, 40 calls without it since".
// Calls count on every rail.
std::string troubles_line(const SwitchTroubles& t) {
  const auto count = [](std::uint64_t n, const char* what) {
    return humane_count(static_cast<double>(n), what);
  };
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  if (t.failures > 0) add("failed " + count(t.failures, "time"));
  if (t.restarts > 0) add(count(t.restarts, "agreement") + " to send again");
  if (t.fallbacks > 0)
    add("given up at " + humane_seconds(seconds(t.first_fallback)) + ", " +
        count(t.ring_calls, "call") + " without it since");
  return text;
}

// "4 receive 553.4 MB and send as much per step on average; cores busy 3.1 %, at most 3.2 % (n8);
// memory held: 1.1 GB".
std::string server_line(const std::vector<ServerReport>& servers) {
  double rx = 0, tx = 0, busy = 0, memory = 0;
  const ServerReport* busiest = &servers.front();
  for (const ServerReport& s : servers) {
    rx += s.rx_bytes, tx += s.tx_bytes, busy += s.busy;
    memory += static_cast<double>(s.memory_bytes);
    if (s.busy > busiest->busy) busiest = &s;
  }
  const auto n = static_cast<double>(servers.size());
  return humane_count(n, "machine") + (servers.size() == 1 ? " receives " : " receive ") +
         humane_bytes(rx / n) + " and " + (servers.size() == 1 ? "sends " : "send ") +
         humane_bytes(tx / n) + " per step on average, cores busy " + humane_percent(busy / n) +
         ", at most " + humane_percent(busiest->busy) + " (" + busiest->name +
         "); memory held: " + humane_bytes(memory);
}

std::string text_of(const Exactness& exactness) {
  return std::string(name_of(exactness.level)) + ", " + std::string(name_of(exactness.basis));
}

// The lowest exactness of all rows, and the rows that have it if others are more exact.
std::string exactness_text(const Result& result) {
  const Exactness lowest = exactness_of(result);
  std::string rows;
  bool all = true;
  for (const CollectiveReport& c : result.collectives) {
    all &= c.exactness == lowest;
    if (c.exactness == lowest) rows += (rows.empty() ? " (" : "; ") + c.op + " of " + c.group;
  }
  return text_of(lowest) + (all || rows.empty() ? "" : rows + ")");
}

}  // namespace

std::vector<Fact> time_facts(const Result& result) {
  std::vector<Fact> facts;
  if (!result.jobs.empty()) return facts;  // jobs_table() has them
  facts.push_back({"step time", step_line(result)});
  const std::optional<double> step = summarize(over(result, &IterationReport::seconds)).median;
  if (!step || *step <= 0) return facts;
  if (const std::string text = throughput_line(result, *step); !text.empty()) {
    facts.push_back({"throughput", text});
  }
  const auto part = [&](const char* name, double IterationReport::*field,
                        std::string_view figure = "") {
    const double seconds = summarize(over(result, field)).median.value_or(0);
    if (seconds == 0 || !valid(result, figure)) return;
    facts.push_back(
        {name, humane_seconds(seconds) + " (" + humane_percent(seconds / *step) + " of the step)"});
  };
  part("compute", &IterationReport::compute_seconds);
  part("exposed comm", &IterationReport::exposed_comm_seconds, "exposed_comm");
  part("bubble", &IterationReport::bubble_seconds, "bubble");
  return facts;
}

Table collectives_table(const Result& result) {
  Table table{{{"collective"},
               {"group"},
               {"algorithm"},
               {"calls/step", Align::right},
               {"size/call", Align::right},
               {"size/step", Align::right},
               {"time/call", Align::right},
               {"algbw", Align::right},
               {"busbw", Align::right}},
              {}};
  for (const CollectiveReport& c : result.collectives) {
    // A receiver's time starts when it asks for the data: it is a wait, which gives no bandwidth.
    const bool transfer = c.op == "send_recv";
    const bool timed = c.seconds_median > 0 && c.seconds_error <= Figure::kMostError;
    const bool rated = c.seconds_median > 0 && !transfer && c.bandwidth_error <= Figure::kMostError;
    table.rows.push_back(
        {c.op, c.group, c.algorithm, humane_count(c.calls),
         c.calls > 0 ? humane_bytes(c.bytes / c.calls) : "-", humane_bytes(c.bytes),
         transfer && c.seconds_median == 0 ? "no wait"
         : !timed                          ? "-"
         : transfer                        ? "waits " + humane_seconds(c.seconds_median)
                                           : humane_seconds(c.seconds_median),
         rated ? gigabytes(c.algbw_GBps) : "-", rated ? gigabytes(c.busbw_GBps) : "-"});
  }
  return table;
}

std::vector<Fact> event_facts(const Result& result) {
  constexpr std::size_t kMost = 8;
  std::vector<Fact> facts;
  for (const EventReport& e : result.events) {
    if (facts.size() == kMost) {
      const auto more = static_cast<double>(result.events.size() - kMost);
      facts.push_back({"", humane_count(more) + " more, in the JSON result"});
      break;
    }
    facts.push_back({facts.empty() ? "events" : "",
                     "at " + humane_seconds(e.at_s) +
                         (e.iteration ? " (iteration " + std::to_string(*e.iteration) + ")" : "") +
                         ": " + (e.kind == "mark" ? "mark " : "") + e.what});
  }
  return facts;
}

std::vector<Fact> traffic_facts(const Result& result) {
  std::vector<Fact> facts;
  facts.push_back({"between nodes",
                   humane_bytes(result.wire_bytes_per_iteration) + " in " +
                       humane_mean_count(result.messages_per_iteration, "message") + " per step"});
  if (result.slice) {
    const SliceReport& s = *result.slice;
    facts.push_back(
        {"not played", "sent to other nodes " + humane_bytes(s.bytes_to_outside) + " in " +
                           humane_mean_count(s.messages_to_outside, "message") +
                           " per step, from them " + humane_bytes(s.bytes_from_outside) + " in " +
                           humane_mean_count(s.messages_from_outside, "message") + "; modelled"});
  }
  if (const std::string nics = nic_line(result.nics, result.nics_per_node); !nics.empty())
    facts.push_back({"per NIC", nics});
  facts.push_back(
      {"inside nodes", humane_bytes(result.intra_node_bytes_per_iteration) + " in " +
                           humane_mean_count(result.intra_node_messages_per_iteration, "message") +
                           " per step"});
  for (Fact& fact : network_facts(result.network)) facts.push_back(std::move(fact));
  if (result.tensors) facts.push_back({"tensors", tensor_line(*result.tensors)});
  if (result.compression) facts.push_back({"compression", compression_line(*result.compression)});
  if (result.training) facts.push_back({"training", training_line(*result.training)});
  if (result.network_switch)
    facts.push_back({"switch", switch_line(*result.network_switch, result.played_wall_seconds)});
  if (result.troubles) facts.push_back({"switch trouble", troubles_line(*result.troubles)});
  if (!result.servers.empty()) facts.push_back({"servers", server_line(result.servers)});
  if (result.packets) facts.push_back({"packets", packet_line(*result.packets)});
  for (const InterfaceReport& i : result.interfaces) {
    if (!i.tx_bytes || !i.rx_bytes) continue;
    facts.push_back(
        {"interface", "host " + to_string(i.host) + " " +
                          (i.network_namespace.empty() ? "" : i.network_namespace + ": ") +
                          i.device + (i.loopback ? " (loopback)" : "") + " sent " +
                          humane_bytes(static_cast<double>(*i.tx_bytes)) + ", received " +
                          humane_bytes(static_cast<double>(*i.rx_bytes)) + troubles(i)});
  }
  return facts;
}

std::vector<Fact> fidelity_facts(const Result& result) {
  std::vector<Fact> facts;
  const Fidelity& f = result.fidelity;
  if (result.verify) {
    facts.push_back(
        {"verification", humane_count(static_cast<double>(result.verify->checked_elements)) +
                             " elements checked, " +
                             humane_count(static_cast<double>(result.verify->wrong_elements)) +
                             " wrong"});
  }
  if (!f.modelled) {
    facts.push_back({"lateness", "p50 " + humane_seconds(f.lateness_us_p50 * 1e-6) + ", p99 " +
                                     humane_seconds(f.lateness_us_p99 * 1e-6) + ", max " +
                                     humane_seconds(f.lateness_us_max * 1e-6) + "; " +
                                     humane_percent(f.critical_lateness) +
                                     " of the step on the critical path"});
    facts.push_back(
        {"machine", "loop busy " + humane_percent(f.loop_busy) + ", held up while work was due " +
                        (f.run_queue_wait < 0 ? "unreadable" : humane_percent(f.run_queue_wait)) +
                        ", rate error " + humane_percent(f.rate_error)});
    if (const std::string what = left_out(result); !what.empty())
      facts.push_back({"left out", what + ": this machine may have put it off by so much"});
  }
  for (const StallReport& s : result.stalls) {
    std::string hit;
    for (const int i : s.iterations) hit += (hit.empty() ? "" : ", ") + std::to_string(i);
    facts.push_back({"stall", "nothing moved for " + humane_seconds(s.wall_seconds) + " from " +
                                  humane_seconds(s.wall_start_s) +
                                  " after the start of the measured iterations, wall; iteration " +
                                  hit});
  }
  facts.push_back({"exactness", exactness_text(result)});
  return facts;
}

}  // namespace ghostrank
