// Flags of nccl-tests about GPUs, CUDA or NCCL's own buffers, which ghost ranks do not have. A flag
// is accepted with the value that changes nothing, and refused with the reason otherwise.
//
// Threading: called once, from main.
#pragma once

namespace CLI {
class App;
}

namespace ghostrank {

void add_gpu_flags(CLI::App& app);  // parsing throws Error(usage)

}  // namespace ghostrank
