// A picture of the bytes that host 0 sends in each millisecond of a training step: PyTorch's above
// ghostrank's.
//
// Threading: one thread.
#pragma once

#include <functional>
#include <string>

#include "tests/lab/lab.h"

namespace ghostrank::fidelity {

// `torch` and `ghostrank` each play several steps while the wire is captured; the last but one is
// drawn.
void draw_timeline(testing::Lab& lab, const std::function<void()>& torch,
                   const std::function<void()>& ghostrank, const std::string& svg);

}  // namespace ghostrank::fidelity
