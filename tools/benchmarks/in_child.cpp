#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/benchmarks/jobs.h"

namespace ghostrank::bench {

std::optional<InChild> in_child(const std::function<double()>& play) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  malloc_trim(0);  // return free memory, so that the child's figure does not include it
  const pid_t child = fork();
  if (child == 0) {
    const double said = play();
    _exit(write(ends[1], &said, sizeof said) == sizeof said ? 0 : 1);
  }
  close(ends[1]);
  InChild result;
  const bool told = read(ends[0], &result.said, sizeof result.said) == sizeof result.said;
  close(ends[0]);
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || !told || status != 0)
    return std::nullopt;
  result.most_resident_kib = static_cast<double>(usage.ru_maxrss);
  return result;
}

}  // namespace ghostrank::bench
