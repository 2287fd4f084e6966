// See comparison.h.
#include "tools/compare/comparison.h"

#include <algorithm>
#include <cmath>

#include "tools/text/humane.h"

namespace ghostrank {
namespace {

// Averages over iterations carry rounding; a missing message changes them by more.
bool equal(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max({1.0, a, b}); }

std::string ledger_cell(const StoredResult& first, const StoredResult& other) {
  const LedgerComparison comparison = compare_ledgers(first, other);
  switch (comparison.outcome) {
    case Ledgers::same:
      return "same";
    case Ledgers::different:
      return "DIFFERENT in " + humane_count(static_cast<double>(comparison.pairs_different)) +
             " pairs";
    case Ledgers::unknown:
      break;
  }
  return "unknown";
}

std::string pairs_cell(const StoredResult& first) {
  if (!first.pairs_known) return "unknown";
  return humane_count(static_cast<double>(first.pairs.size()), "pair");
}

std::string trust(const StoredResult& r) {
  if (!r.interrupted.empty()) return "INCOMPLETE";
  if (r.modelled) return "modelled";
  return r.faithful ? "faithful" : "NOT faithful";
}

// Adds a row: each result's value and, from the second result on, its ratio to the first's.
void add_measure(Table& table, const Measure& measure, const std::vector<StoredResult>& results) {
  std::vector<std::string> row{measure.name};
  const std::optional<double> first = measure.of(results.front());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::optional<double> value = measure.of(results[i]);
    row.push_back(value ? measure.text(*value) : "-");
    if (i == 0) continue;
    const bool comparable = value && first && *first != 0;
    row.push_back(comparable ? "x " + significant(*value / *first) : "");
  }
  table.rows.push_back(std::move(row));
}

void add_words(Table& table, const std::string& name, const std::vector<StoredResult>& results,
               std::string (*word)(const StoredResult&)) {
  std::vector<std::string> row{name};
  for (std::size_t i = 0; i < results.size(); ++i) {
    row.push_back(word(results[i]));
    if (i > 0) row.emplace_back();
  }
  table.rows.push_back(std::move(row));
}

}  // namespace

LedgerComparison compare_ledgers(const StoredResult& a, const StoredResult& b) {
  if (!a.pairs_known || !b.pairs_known) return {};
  std::size_t different = 0, shared = 0;
  for (const auto& [pair, traffic] : a.pairs) {
    const auto found = b.pairs.find(pair);
    if (found == b.pairs.end()) continue;
    ++shared;
    if (!equal(traffic.first, found->second.first) ||
        !equal(traffic.second, found->second.second)) {
      ++different;
    }
  }
  different += a.pairs.size() - shared + b.pairs.size() - shared;
  return {different == 0 ? Ledgers::same : Ledgers::different, different};
}

const std::vector<Measure>& measures() {
  using R = const StoredResult&;
  using Value = std::optional<double>;
  static const std::vector<Measure> table{
      {"step time", "step_seconds", [](R r) { return r.step_median; }, humane_seconds},
      {"compute", "compute_seconds", [](R r) { return r.compute; }, humane_seconds},
      {"exposed comm", "exposed_comm_seconds", [](R r) { return r.exposed; }, humane_seconds},
      {"bubble", "bubble_seconds", [](R r) { return r.bubble; }, humane_seconds},
      {"bytes/step", "wire_bytes_per_iteration", [](R r) { return Value(r.wire_bytes); },
       humane_bytes},
      {"messages/step", "messages_per_iteration", [](R r) { return Value(r.messages); },
       humane_count},
      {"ranks", "ranks", [](R r) { return Value(r.ranks); }, humane_count},
      {"processes", "processes", [](R r) { return Value(r.processes); }, humane_count},
      {"dilation", "dilation", [](R r) { return Value(r.dilation); }, humane_count},
      {"wall time", "wall_seconds", [](R r) { return Value(r.wall_seconds); }, humane_seconds},
  };
  return table;
}

std::string short_name(const StoredResult& r) {
  const std::size_t slash = r.file.rfind('/');
  return slash == std::string::npos ? r.file : r.file.substr(slash + 1);
}

Table comparison_table(const std::vector<StoredResult>& results) {
  Table table{{{""}}, {}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    table.columns.push_back({short_name(results[i]), Align::right});
    if (i > 0) table.columns.push_back({"", Align::right});
  }
  add_words(table, "job", results, [](const StoredResult& r) { return r.job; });
  add_words(table, "fabric", results, [](const StoredResult& r) { return r.fabric; });
  add_words(table, "transport", results, [](const StoredResult& r) { return r.transport; });
  for (const Measure& measure : measures()) add_measure(table, measure, results);
  std::vector<std::string> ledgers{"pairs"};
  for (std::size_t i = 0; i < results.size(); ++i) {
    ledgers.push_back(i == 0 ? pairs_cell(results[0]) : ledger_cell(results[0], results[i]));
    if (i > 0) ledgers.emplace_back();
  }
  table.rows.push_back(std::move(ledgers));
  add_words(table, "trust", results, trust);
  return table;
}

std::string comparison_text(const std::vector<StoredResult>& results, const Paint& paint) {
  std::string text = render(comparison_table(results));
  for (const StoredResult& r : results) {
    if (!r.reason.empty() && !r.faithful) text += "\n" + short_name(r) + ": " + r.reason;
  }
  text += text.back() == '\n' ? "" : "\n";
  const std::size_t header = text.find('\n');
  return paint.bold(text.substr(0, header)) + text.substr(header);
}

}  // namespace ghostrank
