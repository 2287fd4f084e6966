#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "switch/ports/fd.h"
#include "tools/benchmarks/jobs.h"

namespace ghostrank::bench {

std::optional<InChild> in_child(const std::function<double()>& play) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const Fd heard(ends[0]);
  Fd told(ends[1]);
  malloc_trim(0);  // return free memory, so that the child's figure does not include it
  const pid_t child = fork();
  if (child == 0) {
    const double said = play();
    _exit(write(told.get(), &said, sizeof said) == sizeof said ? 0 : 1);
  }
  told.close();
  InChild result;
  const bool said = read(heard.get(), &result.said, sizeof result.said) == sizeof result.said;
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || !said || status != 0)
    return std::nullopt;
  result.most_resident_kib = static_cast<double>(usage.ru_maxrss);
  for (const timeval& time : {usage.ru_utime, usage.ru_stime})
    result.cpu_seconds +=
        static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  return result;
}

}  // namespace ghostrank::bench
