// What host 0 sends in one training step, millisecond by millisecond, of PyTorch and of ghostrank,
// one above the other.
//
// Threading: one thread.
#pragma once

#include <functional>
#include <string>

#include "tests/lab/lab.h"

namespace ghostrank::fidelity {

// Each of the two plays several steps while the wire is captured; the last but one is drawn.
void draw_timeline(testing::Lab& lab, const std::function<void()>& torch,
                   const std::function<void()>& ghostrank, const std::string& svg);

}  // namespace ghostrank::fidelity
