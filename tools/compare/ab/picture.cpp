// A comparison as a picture: a dot for each run, the median and interval of each variant.
#include "tools/compare/ab/comparison.h"
#include "tools/text/svg.h"

namespace ghostrank {

std::string ab_svg(const AbComparison& c, const AbSummary& s) {
  SvgDots dots{c.job + ": step time of each run", "step time, seconds of the emulated cluster", {}};
  for (std::size_t i = 0; i < c.variants.size(); ++i) {
    const VariantSummary& v = s.variants[i];
    SvgDotColumn column{c.variants[i].name, {}, v.median, {}, {}};
    for (const AbRun& run : c.runs) {
      if (run.variant == i && run.block < s.blocks && !run.retried)
        column.values.push_back(run.step_seconds);
    }
    if (v.ci95) column.low = v.ci95->low, column.high = v.ci95->high;
    dots.columns.push_back(std::move(column));
  }
  return svg_dots(dots);
}

}  // namespace ghostrank
