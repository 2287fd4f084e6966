#include "tools/switching/report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tools/text/humane.h"
#include "tools/text/table.h"

namespace ghostrank {
namespace {

using nlohmann::ordered_json;

std::string number(std::uint64_t n) { return std::to_string(n); }

Table ports_table(const switchml::SwitchCounters& counters) {
  Table table{{{"port", Align::right},
               {"in", Align::right},
               {"out", Align::right},
               {"malformed", Align::right},
               {"of no job", Align::right},
               {"lost on purpose", Align::right},
               {"no such address", Align::right}},
              {}};
  for (std::size_t p = 0; p < counters.ports.size(); ++p) {
    const switchml::PortCounters& c = counters.ports[p];
    table.rows.push_back({number(p), number(c.received), number(c.sent), number(c.malformed),
                          number(c.strangers), number(c.lost), number(c.unknown)});
  }
  return table;
}

Table jobs_table(const switchml::SwitchPlan& plan, const switchml::SwitchCounters& counters) {
  Table table{{{"job"},
               {"workers", Align::right},
               {"elements", Align::right},
               {"chunks in", Align::right},
               {"sums", Align::right},
               {"repeated", Align::right},
               {"copies out", Align::right}},
              {}};
  for (const auto& [name, c] : counters.jobs) {
    const auto job = std::find_if(plan.jobs.begin(), plan.jobs.end(),
                                  [&](const switchml::JobPlan& j) { return j.name == name; });
    if (job == plan.jobs.end()) continue;
    table.rows.push_back({name, number(job->workers.size()),
                          number(static_cast<std::uint64_t>(job->elements)), number(c.received),
                          number(c.broadcasts), number(c.duplicates + c.retransmissions),
                          number(c.sent)});
  }
  return table;
}

}  // namespace

std::string switch_json(const switchml::SwitchCounters& counters) {
  ordered_json ports = ordered_json::array(), jobs = ordered_json::array();
  for (std::size_t p = 0; p < counters.ports.size(); ++p) {
    const switchml::PortCounters& c = counters.ports[p];
    ports.push_back({{"port", p},
                     {"received", c.received},
                     {"received_bytes", c.received_bytes},
                     {"sent", c.sent},
                     {"sent_bytes", c.sent_bytes},
                     {"malformed", c.malformed},
                     {"strangers", c.strangers},
                     {"lost", c.lost},
                     {"unknown", c.unknown}});
  }
  for (const auto& [name, c] : counters.jobs) {
    jobs.push_back({{"job", name},
                    {"received", c.received},
                    {"collected", c.collected},
                    {"duplicates", c.duplicates},
                    {"broadcasts", c.broadcasts},
                    {"retransmissions", c.retransmissions},
                    {"results", c.results},
                    {"gaps", c.gaps},
                    {"sent", c.sent}});
  }
  return ordered_json{{"ports", ports}, {"jobs", jobs}}.dump();
}

std::string switch_report(const std::string& title, const switchml::SwitchPlan& plan,
                          const switchml::SwitchCounters& counters, const SwitchTime& time) {
  double packets = 0, bytes = 0;
  for (const switchml::PortCounters& c : counters.ports) {
    packets += static_cast<double>(c.received);
    bytes += static_cast<double>(c.received_bytes);
  }
  std::string text = title + "\n" + render(ports_table(counters), 2) + "\n";
  if (!counters.jobs.empty()) text += render(jobs_table(plan, counters), 2) + "\n";
  text += humane_count(packets) + " packets (" + humane_bytes(bytes) + ") in " +
          humane_seconds(time.seconds);
  if (time.processor_seconds > 0)
    text += ", payload summed and copied; " + humane_seconds(time.processor_seconds) +
            " of processor time: " + humane_count(packets / time.processor_seconds) +
            " packets/s per core";
  text += "\n";
  return text;
}

}  // namespace ghostrank
