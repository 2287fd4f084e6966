// Distributions of gradients as jobs and commands name them: laplace, gaussian, gamma SHAPE, pareto
// SHAPE, measured FILE.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "collectives/gradient_law.h"

namespace ghostrank {

// `scale`: mean magnitude of a law that is not measured; a histogram's file is looked for from
// `folder`. Throws Error(usage) with what is wrong after `where`.
GradientLaw parse_gradient_law(const std::string& text, double scale, const std::string& folder,
                               const std::string& where);

}  // namespace ghostrank
