#include "tools/compare/comparison.h"
#include "tools/report/json/json.h"

namespace ghostrank {

std::string comparison_json(const std::vector<StoredResult>& results) {
  Json list = Json::array();
  for (const StoredResult& r : results) {
    Json values = Json::object(), ratios = Json::object();
    for (const Measure& measure : measures()) {
      const auto value = measure.of(r), first = measure.of(results.front());
      values[measure.key] = or_null(value);
      ratios[measure.key] = value && first && *first != 0 ? Json(*value / *first) : Json(nullptr);
    }
    const LedgerComparison ledgers = compare_ledgers(results.front(), r);
    list.push_back({{"file", r.file},
                    {"job", r.job},
                    {"fabric", r.fabric},
                    {"provider", r.provider},
                    {"transport", r.transport},
                    {"values", std::move(values)},
                    {"ratio_to_first", std::move(ratios)},
                    {"pairs_same_as_first", ledgers.outcome == Ledgers::unknown
                                                ? Json(nullptr)
                                                : Json(ledgers.outcome == Ledgers::same)},
                    {"faithful", r.faithful},
                    {"modelled", r.modelled},
                    {"reason", r.reason}});
  }
  return dump({{"schema", "ghostrank/comparison/1"}, {"results", std::move(list)}});
}

}  // namespace ghostrank
