// `nccl_trace_compare [--topology FILE.xml] TRACE...`: compares the traces of all ranks of one job
// with our schedules. The topology is the node of every rank, as NCCL dumped it
// (NCCL_TOPO_DUMP_FILE). Prints a line per launch; exit 0 when all are equal, 1 when one differs, 2
// for an invalid trace.
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>

#include "profiles/load/files/nccl_graph.h"
#include "profiles/load/files/nccl_topology.h"
#include "tests/nccl_trace/compare.h"

int main(int argc, char** argv) {
  using namespace ghostrank;
  using namespace ghostrank::nccl_trace;
  try {
    std::vector<RankTrace> traces;
    std::shared_ptr<const NcclMachine> machine;
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--topology") == 0 && i + 1 < argc) {
        const std::string file = argv[++i];
        machine = parse_nccl_topology(read_nccl_graph_file(file, ""), file);
        continue;
      }
      std::ifstream in(argv[i]);
      if (!in) throw std::runtime_error(std::string(argv[i]) + " cannot be read");
      traces.push_back(read_trace(in, argv[i]));
    }
    int equal = 0;
    const auto verdicts = compare(traces, machine);
    for (const Verdict& v : verdicts) {
      equal += v.difference.empty();
      std::printf("%-7s %s%s%s\n", v.difference.empty() ? "equal" : "DIFFERS", v.mark.c_str(),
                  v.difference.empty() ? "" : "\n        ", v.difference.c_str());
    }
    std::printf("%d of %zu launches are equal\n", equal, verdicts.size());
    return equal == std::ssize(verdicts) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "nccl_trace_compare: %s\n", e.what());
    return 2;
  }
}
