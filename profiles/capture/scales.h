// Predicts a capture at another number of ranks, from captures of one script at two or more
// numbers of ranks.
//
// More ranks change a step by their part of the all-reduces: each sends and receives 2 (1 - 1 / n)
// of the bytes. So the time of each phase of a step (before the forward, forward, loss, backward,
// what lies before the optimizer, optimizer), the network's time per byte and its latency are
// fitted as a + b / n, by least squares over the captures' medians. b is zero where the captures
// differ by no more than twice their standard error: noise must not be extrapolated. Recorded steps
// are those of the capture with most ranks; the fit scales the delays of each phase, so the steps
// keep their spread. Single layers are not fitted: their medians scatter more than they differ.
//
// The error is that of the medians, carried through the fit; from three captures on it includes how
// far the medians are off the curve. Two captures cannot show that a curve is of the wrong form.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/input/yaml.h"

namespace ghostrank {

// `captures`: descriptions (schema ghostrank/model/1, kind layers, with `capture` and
// `recorded_ns`). `comments` gets what was measured, fitted and assumed. Throws Error(usage) where
// the captures contradict each other: other layers or buckets, a number of ranks given twice,
// networks of other rates, phases that would take less than nothing.
YamlValue fit_scales(std::vector<YamlValue> captures, int ranks,
                     std::vector<std::string>& comments);

// One quantity at several numbers of ranks: `value` with its standard error.
struct ScalePoint {
  double ranks = 0, value = 0, error = 0;
};

struct ScaleFit {
  double value = 0, error = 0;  // at the number of ranks asked for
  bool constant = false;        // the points do not differ
  double residual = 0;          // of three points or more: how far one is off the curve, at most
};

// a + b / ranks, of two points or more, at different numbers of ranks.
ScaleFit fit_scale(const std::vector<ScalePoint>& points, double ranks);

}  // namespace ghostrank
