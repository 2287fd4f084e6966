// A comparison as text: a table, the ratios and the verdicts on them.
#include <set>

#include "profiles/input/keys.h"
#include "tools/compare/ab/comparison.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

std::string interval_text(const std::optional<Interval>& ci, std::string (*text)(double)) {
  return ci ? " [" + text(ci->low) + ", " + text(ci->high) + "]" : "";
}

std::string four_digits(double value) { return significant(value); }

std::string bottleneck_text(const VariantSummary& v) {
  if (v.typical.bottleneck.empty()) return "unknown";
  std::string text = v.typical.bottleneck == "host-cpu" ? "the host's CPU" : v.typical.bottleneck;
  return text + (v.mixed ? " (not in all runs)" : "");
}

std::string header_text(const VariantSummary& v) {
  const AbRun& r = v.typical;
  return r.header_share ? humane_percent(*r.header_share) + " (" + r.header_basis + ")" : "-";
}

std::string link_text(const VariantSummary& v) {
  const AbRun& r = v.typical;
  return r.link_busy ? humane_percent(*r.link_busy) + " (" + r.hottest_link + ")" : "-";
}

std::string switch_text(const VariantSummary& v) {
  const AbRun& r = v.typical;
  if (r.switch_target.empty()) return "-";
  return r.switch_target +
         (r.switch_busy ? ", busy " + humane_percent(*r.switch_busy) + " of a core" : "");
}

std::string optional_text(const std::optional<double>& value, std::string (*text)(double)) {
  return value ? text(*value) : "-";
}

struct Row {
  const char* name;
  std::string (*text)(const VariantSummary& v);
  bool needed;  // shown even where no variant has a value
};

// The rows of every figure.
const Row kRows[] = {
    {"step time",
     [](const VariantSummary& v) {
       return humane_seconds(v.median) +
              (v.deterministic ? ", deterministic" : interval_text(v.ci95, humane_seconds));
     },
     true},
    {"runs", [](const VariantSummary& v) { return std::to_string(v.runs); }, true},
    {"played again",
     [](const VariantSummary& v) {
       return v.retried == 0
                  ? std::string("-")
                  : humane_count(static_cast<double>(v.retried), "run") + " not faithful";
     },
     false},
    {"transport", [](const VariantSummary& v) { return v.typical.transport; }, true},
    {"collectives", [](const VariantSummary& v) { return v.typical.schemes; }, true},
    {"compute", [](const VariantSummary& v) { return humane_seconds(v.typical.compute_seconds); },
     true},
    {"exposed comm",
     [](const VariantSummary& v) { return humane_seconds(v.typical.exposed_seconds); }, true},
    {"predicted comm",
     [](const VariantSummary& v) {
       return optional_text(v.typical.predicted_seconds, humane_seconds);
     },
     false},
    {"bytes/step", [](const VariantSummary& v) { return humane_bytes(v.typical.bytes); }, true},
    {"messages/step", [](const VariantSummary& v) { return humane_count(v.typical.messages); },
     true},
    {"packets/step",
     [](const VariantSummary& v) { return optional_text(v.typical.packets, humane_count); }, false},
    {"headers", header_text, false},
    {"sent again/step",
     [](const VariantSummary& v) { return optional_text(v.typical.retransmissions, humane_count); },
     false},
    {"busiest NIC",
     [](const VariantSummary& v) {
       return humane_bytes(v.typical.busiest_nic_bytes) +
              (v.typical.nic_busy ? ", busy " + humane_percent(*v.typical.nic_busy) : "");
     },
     true},
    {"helpers' NIC",
     [](const VariantSummary& v) {
       return v.typical.helper_busy ? "busy " + humane_percent(*v.typical.helper_busy)
                                    : std::string("-");
     },
     false},
    {"hottest link", link_text, false},
    {"switch", switch_text, false},
    {"CPU s/GB",
     [](const VariantSummary& v) {
       return optional_text(v.typical.cpu_seconds_per_GB, four_digits);
     },
     false},
    {"bottleneck", bottleneck_text, true},
};

std::string verdict_text(const AbComparison& c, const RatioSummary& r) {
  const std::string& of = c.variants[r.of].name;
  switch (r.judgement.verdict) {
    case Verdict::faster:
      return of + " is faster, " + significant(1 / r.step.value, 4) + " times";
    case Verdict::slower:
      return of + " is slower, " + significant(r.step.value, 4) + " times";
    case Verdict::same:
      return "the same (" + r.judgement.reason + ")";
    case Verdict::inconclusive:
      break;
  }
  return r.judgement.reason;
}

std::vector<Fact> ratio_facts(const AbComparison& c, const RatioSummary& r) {
  const std::string name = c.variants[r.of].name + "/" + c.variants[r.to].name;
  std::vector<Fact> facts{{name + " step", significant(r.step.value) +
                                               interval_text(r.step.ci95, four_digits) + ": " +
                                               verdict_text(c, r)}};
  if (r.collectives)
    facts.push_back({name + " calls", significant(*r.collectives) +
                                          ": time of the collectives, whether overlapped or not"});
  if (r.predicted && r.exposed)
    facts.push_back({name + " comm", significant(*r.exposed) + " measured (exposed), " +
                                         significant(*r.predicted) +
                                         " by BytePS's theorem, which holds without overlap: " +
                                         humane_percent(*r.exposed / *r.predicted - 1) + " off"});
  if (r.bounds.payload) {
    std::string text = "at least " + significant(1 / *r.bounds.payload) + " by message bytes";
    if (r.bounds.wire) text += ", " + significant(1 / *r.bounds.wire) + " with headers";
    facts.push_back({name + " links", text + ", if the busiest NIC alone mattered"});
  }
  return facts;
}

std::string transports_text(const AbSummary& s) {
  std::set<std::string> transports;
  for (const VariantSummary& v : s.variants) transports.insert(v.typical.transport);
  if (transports.size() == 1) return "equal: " + *transports.begin();
  return "NOT equal: the ratios hold schemes and transports together";
}

}  // namespace

std::string ab_head(const AbComparison& c, const AbSummary& s) {
  if (s.blocks == 0) return "no whole block: nothing to compare";
  if (!s.faithful) return "NOT faithful: the host's CPU was in the way, so nothing is concluded";
  if (s.deterministic)
    return "deterministic: one run a variant; another --seed may draw other paths, places or loads";
  return humane_count(static_cast<double>(s.blocks), "block") +
         ", each of one run of every variant, in random order (seed " + std::to_string(c.seed) +
         "); intervals are 95 %, over runs";
}

Table ab_table(const AbComparison& c, const AbSummary& s) {
  Table table{{{""}}, {}};
  std::vector<std::string> settings{"settings"};
  for (const Variant& v : c.variants) {
    table.columns.push_back({v.name, Align::left});
    settings.push_back(v.settings.empty() ? "the job as it is" : join(v.settings, " "));
  }
  table.rows.push_back(std::move(settings));
  for (const Row& row : kRows) {
    std::vector<std::string> cells{row.name};
    bool known = row.needed;
    for (const VariantSummary& v : s.variants) {
      cells.push_back(v.runs == 0 ? "-" : row.text(v));
      known = known || cells.back() != "-";
    }
    if (known) table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<Fact> ab_facts(const AbComparison& c, const AbSummary& s) {
  std::vector<Fact> facts;
  for (const RatioSummary& r : s.ratios) {
    for (Fact& fact : ratio_facts(c, r)) facts.push_back(std::move(fact));
  }
  facts.push_back({"transport", transports_text(s)});
  return facts;
}

std::string ab_text(const AbComparison& c, const AbSummary& s, const Paint& paint) {
  std::string text;
  if (!c.interrupted.empty()) text += paint.bad("INCOMPLETE: " + c.interrupted) + "\n";
  const std::string head = ab_head(c, s);
  text += (s.blocks > 0 && !s.faithful ? paint.bad(head) : head) + "\n";
  if (s.blocks == 0) return text;
  const std::string table = render(ab_table(c, s));
  const std::size_t header = table.find('\n');
  text += "\n" + paint.bold(table.substr(0, header)) + table.substr(header) + "\n" +
          render(ab_facts(c, s));
  for (const std::string& note : c.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace ghostrank
