// `nccl_trace_compare TRACE...`: compares the traces of all ranks of one job with our schedules.
// Prints a line per call; exit 0 when all are equal, 1 when one differs, 2 for an invalid trace.
#include <cstdio>
#include <exception>
#include <fstream>

#include "tests/nccl_trace/compare.h"

int main(int argc, char** argv) {
  using namespace ghostrank::nccl_trace;
  try {
    std::vector<RankTrace> traces;
    for (int i = 1; i < argc; ++i) {
      std::ifstream in(argv[i]);
      if (!in) throw std::runtime_error(std::string(argv[i]) + " cannot be read");
      traces.push_back(read_trace(in, argv[i]));
    }
    int equal = 0;
    const auto verdicts = compare(traces);
    for (const Verdict& v : verdicts) {
      equal += v.difference.empty();
      std::printf("%-7s %s%s%s\n", v.difference.empty() ? "equal" : "DIFFERS", v.call.c_str(),
                  v.difference.empty() ? "" : "\n        ", v.difference.c_str());
    }
    std::printf("%d of %zu calls are equal\n", equal, verdicts.size());
    return equal == std::ssize(verdicts) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "nccl_trace_compare: %s\n", e.what());
    return 2;
  }
}
