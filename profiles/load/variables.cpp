#include "profiles/load/variables.h"

#include <algorithm>
#include <array>
#include <unistd.h>
#include <vector>

#include "profiles/error.h"
#include "profiles/load/config.h"
#include "profiles/load/job_schema.h"

namespace ghostrank {
namespace {

constexpr std::string_view kPrefix = "GHOSTRANK_";

constexpr std::array kVariables{
    Variable{"GHOSTRANK_PROFILES", "folders with profiles, separated by colons"},
    Variable{"GHOSTRANK_TIMEOUT_S",
             "seconds until processes have met and are connected, also for one that has a mistake "
             "of its own and tells the others; 30"},
    Variable{"GHOSTRANK_PORT", "where process 0 listens, in place of `MASTER_PORT`"},
    Variable{"GHOSTRANK_ADDRESS",
             "over PMIx (mpirun, `srun --mpi=pmix`): the address or interface on which process 0 "
             "listens"},
    Variable{"GHOSTRANK_JOB_ID", "alike in all processes of a job; keeps others out"},
    Variable{"GHOSTRANK_TOKEN", "likewise, and told to nobody"},
    Variable{"GHOSTRANK_LOG_LEVEL", "`--log-level` where that is not given"},
    Variable{"GHOSTRANK_PROFILER_DIR",
             "`libghostrank-profiler.so`: where NCCL's calls are written; the current folder"},
    Variable{"GHOSTRANK_PROFILER_STEPS", "`libghostrank-profiler.so`: 0 leaves messages out"},
    Variable{"GHOSTRANK_CUDA_LIBRARY",
             "`calibrate device`: the path of `libghostrank-cuda.so`; beside this program, or in "
             "`../lib`"},
    Variable{"RANK", "which process this is, with `WORLD_SIZE`; goes before every launcher"},
    Variable{"WORLD_SIZE", "how many processes there are, with `RANK`"},
    Variable{"MASTER_ADDR", "where process 0 listens"},
    Variable{"MASTER_PORT", "its port"},
    Variable{"OMPI_COMM_WORLD_RANK",
             "of mpirun, with `OMPI_COMM_WORLD_SIZE`, where there is no "
             "PMIx"},
    Variable{"SLURM_PROCID", "of srun, with `SLURM_NTASKS` and `SLURM_NODELIST`"},
    Variable{"PMI_RANK", "of MPICH's mpiexec, with `PMI_SIZE`"},
    Variable{"NCCL_TESTS_MIN_BW",
             "`bench`: exit 1 where the mean bus bandwidth is less than nine tenths of so many "
             "GB/s"},
    Variable{"NCCL_TESTS_SPLIT",
             "`bench`: `AND`, `OR`, `MOD` or `DIV` and a number: the ranks are dealt out to groups "
             "by what that makes of their numbers, and all groups make the calls at once"},
    Variable{"NCCL_TESTS_SPLIT_MASK", "`bench`: hexadecimal, the same as `AND` and this number"},
    Variable{"NO_COLOR", "no colours"},
    Variable{"TMPDIR", "where temporary files go"}};

// Those of tests, benchmarks and tools/dev, which start this program: it reads none of them,
// refuses none, and suggests none.
constexpr std::array<std::string_view, 11> kOfTests{
    "GHOSTRANK_UPDATE",      "GHOSTRANK_UPDATE_TRANSCRIPTS", "GHOSTRANK_TEST_DATA",
    "GHOSTRANK_FUZZ_ROUNDS", "GHOSTRANK_RANDOM_JOBS",        "GHOSTRANK_RANDOM_FIRST",
    "GHOSTRANK_FAULT_RUNS",  "GHOSTRANK_FAULT_SEED",         "GHOSTRANK_SWITCH_PROOF",
    "GHOSTRANK_BENCH_LONG",  "GHOSTRANK_PROCESSES"};

std::vector<std::string> known() {
  std::vector<std::string> names;
  for (const Variable& variable : kVariables) names.emplace_back(variable.name);
  for (const Key& key : job_keys()) names.push_back(environment_name(key.path));
  return names;
}

}  // namespace

std::span<const Variable> variables() { return kVariables; }

std::string variables_markdown() {
  std::string out = "| variable | meaning |\n|---|---|\n";
  for (const Variable& variable : kVariables)
    out += "| `" + std::string(variable.name) + "` | " + std::string(variable.doc) + " |\n";
  return out;
}

void check_variables() {
  const std::vector<std::string> names = known();
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view text = *at;
    const std::string name(text.substr(0, text.find('=')));
    if (!name.starts_with(kPrefix) || std::find(names.begin(), names.end(), name) != names.end() ||
        std::find(kOfTests.begin(), kOfTests.end(), name) != kOfTests.end())
      continue;
    const std::string near = nearest(name, names);
    throw Error("environment: there is no variable " + name +
                (near.empty() ? "; unset it (docs/job-format.md lists those there are)"
                              : "; did you mean " + near + "?"));
  }
}

}  // namespace ghostrank
