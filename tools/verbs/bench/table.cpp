// The output of bench for a collective: see bench/table.h.
#include "tools/verbs/bench/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "emulator/result/figures.h"
#include "tools/report/run_report.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

__attribute__((format(printf, 1, 2))) std::string text_of(const char* format, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return text.data();
}

// Without the iterations that -I skips.
std::span<const double> shown(const BenchHead& head, const std::vector<double>& iterations) {
  const auto all = std::span(iterations);
  return all.subspan(std::min(static_cast<std::size_t>(head.skipped), all.size()));
}

// Time, bandwidths, wrong elements and what -I adds: the same for out-of-place and in-place.
std::string measured(const BenchHead& head, const BenchRow& row) {
  const std::string wrong =
      row.wrong ? text_of("%6g", static_cast<double>(*row.wrong)) : std::string("   N/A");
  const std::string text =
      text_of("  %7s  %6s  %6s  %s", fitted(row.seconds * 1e6, 7).c_str(),
              fitted(row.algbw_GBps, 6).c_str(), fitted(row.busbw_GBps, 6).c_str(), wrong.c_str());
  if (!head.per_iteration) return text;
  const IterationStats stats = stats_of(head, row), errors = errors_of(head, row);
  const auto figure = [known = has_stats(head, row)](double value, double error) {
    const bool sure = known && error <= Figure::kMostError;
    return text_of("  %7s", sure ? fitted(value, 7).c_str() : "N/A");
  };
  return text + figure(stats.min * 1e6, errors.min) + figure(stats.max * 1e6, errors.max) +
         figure(stats.p99 * 1e6, errors.p99) + figure(stats.cv_percent(), errors.stdev);
}

// "i_p99 (12 %), i_cv% (unknown)": what the table leaves out, and by how much it may be off.
std::string left_out(const BenchHead& head, const BenchRow& row) {
  std::string text;
  const IterationStats errors = errors_of(head, row);
  const std::array<std::pair<const char*, double>, 4> figures{{{"i_min", errors.min},
                                                               {"i_max", errors.max},
                                                               {"i_p99", errors.p99},
                                                               {"i_cv%", errors.stdev}}};
  for (const auto& [name, error] : figures) {
    if (error <= Figure::kMostError) continue;
    text += (text.empty() ? "" : ", ") + std::string(name) + " (" +
            (error >= kErrorUnknown ? "unknown" : humane_percent(error)) + ")";
  }
  return text;
}

// A line of the table's head; the columns of a measurement appear twice (out-of-place, in-place)
// unless the table is narrow.
using Words = std::array<const char*, 8>;
std::string head_line(const BenchHead& head, const std::array<const char*, 5>& call,
                      const Words& measured, const char* timestamp) {
  constexpr std::array kWidths{7, 6, 6, 6, 7, 7, 7, 7};
  std::string text = text_of("# %10s  %12s  %8s", call[0], call[1], call[2]);
  if (!head.narrow) text += text_of("  %6s  %6s", call[3], call[4]);
  for (int half = 0; half < (head.narrow ? 1 : 2); ++half)
    for (std::size_t i = 0; i < (head.per_iteration ? 8u : 4u); ++i)
      text += text_of("  %*s", kWidths[i], measured[i]);
  return text + (head.timestamps ? text_of("%21s", timestamp) : "") + "\n";
}

std::string column_names(const BenchHead& head) {
  return (head.narrow ? ""
                      : text_of("# %10s  %12s  %8s  %6s  %6s  %19s %*s  %21s\n", "", "", "", "", "",
                                "out-of-place", head.per_iteration ? 48 : 12, "", "in-place")) +
         head_line(head, {"size", "count", "type", "redop", "root"},
                   {"time", "algbw", "busbw", "#wrong", "i_min", "i_max", "i_p99", "i_cv%"},
                   "timestamp") +
         head_line(head, {"(B)", "(elements)", "", "", ""},
                   {"(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)", "(%)"},
                   "YYYY-MM-DD hh:mm:ss");
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

std::string verdict_of(const BenchHead& head, const std::vector<BenchRow>& rows) {
  if (!head.interrupted.empty()) return incomplete(head, rows);
  if (rows.empty()) return "nothing was measured";
  if (rows.front().fidelity.modelled) return kModelledVerdict;
  const auto bad = std::count_if(rows.begin(), rows.end(),
                                 [](const BenchRow& row) { return !row.fidelity.faithful; });
  if (bad == 0) return kFaithfulVerdict;
  return "NOT faithful: " + std::to_string(bad) + " of " + std::to_string(rows.size()) +
         " rows, as marked";
}

}  // namespace

std::string incomplete(const BenchHead& head, const std::vector<BenchRow>& rows) {
  return "INCOMPLETE: " + humane_count(static_cast<double>(rows.size()), "row") + " measured; " +
         head.interrupted;
}

void judge_mean(BenchRow& row) {
  const double error = iteration_errors(row.each, row.late).mean;
  if (error <= Figure::kMostError) return;
  std::string& reason = row.fidelity.reason;
  reason += (reason.empty() ? "" : "; ") + std::string("late calls put the mean off by ") +
            (error >= kErrorUnknown ? "an unknown share" : humane_percent(error)) + " (at most " +
            humane_percent(Figure::kMostError) + ")";
  row.fidelity.faithful = false;
}

bool has_stats(const BenchHead& head, const BenchRow& row) {
  return !shown(head, row.each).empty();
}

IterationStats stats_of(const BenchHead& head, const BenchRow& row) {
  return iteration_stats(shown(head, row.each));
}

IterationStats errors_of(const BenchHead& head, const BenchRow& row) {
  return iteration_errors(shown(head, row.each), shown(head, row.late));
}

std::string fitted(double value, int width) {
  const int digits = value < 1 ? 1 : static_cast<int>(std::floor(std::log10(value))) + 1;
  const int decimals = width - 1 - digits >= 2 ? 2 : width - 1 - digits == 1 ? 1 : 0;
  std::string text = text_of("%.*f", decimals, value);
  if (std::ssize(text) > width) text = text_of("%.*f", 0, value);  // 999.996
  if (std::ssize(text) > width) text = text_of("%.*e", width >= 7 ? 1 : 0, value);
  return text;
}

std::string bench_header(const BenchHead& head) {
  const SizeRange& s = head.sizes;
  const bool factor = s.factor > 1;
  std::string text =
      "# ghostrank " GHOSTRANK_VERSION ", columns of nccl-tests; ghost ranks, no GPU\n" +
      text_of("# Collective test starting: %s\n", perf_name(head.func).c_str()) +
      text_of(
          "# nThread %d nGpus %d minBytes %llu maxBytes %llu step: %llu(%s) warmup iters: %d "
          "iters: %d agg iters: %d validation: %d graph: 0 unalign: 0\n",
          head.threads, head.gpus, static_cast<unsigned long long>(s.first),
          static_cast<unsigned long long>(s.last),
          static_cast<unsigned long long>(factor ? s.factor : s.increment),
          factor ? "factor" : "bytes", head.warmup, head.iterations, head.aggregated, head.checks);
  if (head.per_iteration) {
    text += "# Per-Iteration Report: from the last rank's end of the iteration before to its own";
    if (head.skipped > 0)
      text += "; summary skips first " + std::to_string(head.skipped) + " iterations";
    text += "\n";
  }
  text += "#\n";
  for (const std::string& fact : head.facts) text += "# " + fact + "\n";
  return text + "#\n" + column_names(head);
}

std::string bench_row(const BenchHead& head, const BenchRow& row) {
  std::string text =
      text_of("%12llu  %12llu  %8s", static_cast<unsigned long long>(row.size.size),
              static_cast<unsigned long long>(row.size.count), row.call.type.c_str());
  if (!head.narrow)
    text += text_of("  %6s  %6d", shown_redop(head.func, row.call).c_str(),
                    shown_root(head.func, row.call)) +
            measured(head, row);
  text += measured(head, row);
  if (head.timestamps) text += text_of("%21s", row.timestamp.c_str());
  text += "\n";
  if (row.iterations != head.iterations) {
    text += "#   ^ " + std::to_string(row.iterations) + (row.iterations == 1 ? " iter" : " iters") +
            ": a call has " + humane_count(row.messages) + " messages; -n asks for more\n";
  }
  if (!row.fidelity.faithful) text += "#   ^ NOT faithful: " + row.fidelity.reason + "\n";
  if (const std::string out = head.per_iteration ? left_out(head, row) : ""; !out.empty())
    text += "#   ^ left out, this machine may have put them off by so much: " + out + "\n";
  return text;
}

std::string bench_footer(const BenchHead& head, const std::vector<BenchRow>& rows) {
  const std::uint64_t wrong = wrong_elements(rows);
  std::string text = text_of("# Out of bounds values : %llu %s\n",
                             static_cast<unsigned long long>(wrong), wrong > 0 ? "FAILED" : "OK") +
                     text_of("# Avg bus bandwidth    : %g %s\n#\n", average_busbw(rows),
                             !fast_enough(head, rows)   ? ""
                             : *fast_enough(head, rows) ? "OK"
                                                        : "FAILED");
  if (!rows.empty() && !rows.front().fidelity.modelled) {
    text += "# dilation " + span_of(rows, &BenchRow::dilation) + "\n";
  }
  text += "# a call sent " + span_of(rows, &BenchRow::messages) + " messages, " +
          span_of(rows, &BenchRow::bytes) + " bytes, all ranks together\n";
  return text + "# " + verdict_of(head, rows) +
         "\n#\n# Collective test concluded: " + perf_name(head.func) + "\n";
}

std::string bench_csv(const BenchHead& head, const std::vector<BenchRow>& rows) {
  std::string text =
      "size,count,type,redop,root,time_us,algbw_GBps,busbw_GBps,wrong,iterations,dilation,"
      "messages,bytes,faithful\n";
  for (const BenchRow& row : rows) {
    text +=
        std::to_string(row.size.size) + "," + std::to_string(row.size.count) + "," + row.call.type +
        "," + shown_redop(head.func, row.call) + "," +
        std::to_string(shown_root(head.func, row.call)) +
        text_of(",%.10g,%.10g,%.10g,", row.seconds * 1e6, row.algbw_GBps, row.busbw_GBps) +
        (row.wrong ? std::to_string(*row.wrong) : "") +
        text_of(",%d,%.10g,%.15g,%.15g,", row.iterations, row.dilation, row.messages, row.bytes) +
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

std::optional<bool> fast_enough(const BenchHead& head, const std::vector<BenchRow>& rows) {
  constexpr double kTolerated = 0.9;
  if (!head.demanded_GBps) return std::nullopt;
  return average_busbw(rows) >= kTolerated * *head.demanded_GBps;
}

std::string unfaithful_reason(const std::vector<BenchRow>& rows) {
  for (const BenchRow& row : rows) {
    if (!row.fidelity.faithful) return row.fidelity.reason;
  }
  return "";
}

}  // namespace ghostrank
