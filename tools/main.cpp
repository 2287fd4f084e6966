// The ghostrank command: plays the verb, catches all errors here, returns the exit status.
//
//   0 ok;  1 the run failed, missed an expectation, or was not faithful;  2 usage, job or profile;
//   3 environment;  129, 130, 143 signals
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <new>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

#include "profiles/error.h"
#include "tools/arguments.h"
#include "tools/text/table.h"
#include "tools/verbs.h"

namespace ghostrank {
namespace {

// Freed when an allocation fails in any thread, so that there is memory to unwind and to report it:
// JSON values allocate when they are destroyed.
std::atomic<void*> reserve{nullptr};
// The reserve is only address space: it is never written, so it costs no memory. If kReserveBytes
// cannot be allocated, half is tried, and so on down to kLeastReserve.
constexpr std::size_t kReserveBytes = 8u << 20, kLeastReserve = 64u << 10;

void give_reserve_back() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

void keep_memory_for_the_end() {
  for (std::size_t bytes = kReserveBytes; !reserve && bytes >= kLeastReserve; bytes /= 2)
    reserve = std::malloc(bytes);
  std::set_new_handler(give_reserve_back);
}

// Without stdin, stdout or stderr the job's sockets would take their numbers, and what is printed
// would go to other processes. A missing stdout cannot be written, so that a table which nobody
// gets is still an error.
void fill_missing_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) == -1) open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

// Every thread gets as much stack as the limit says; reading a job alone takes more than 64 KiB.
void check_stack() {
  constexpr rlim_t kLeast = 512u << 10;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= kLeast) return;
  throw Error("the stack is limited to " + std::to_string(stack.rlim_cur >> 10) +
                  " KiB; allow 512 or more (ulimit -s 8192)",
              ErrorKind::environment);
}

// An error is one line, whatever names are in it.
std::string as_line(const std::string& what) {
  std::string line = printable(as_typed(what));
  std::replace(line.begin(), line.end(), '\n', '?');
  return line;
}

}  // namespace
}  // namespace ghostrank

int main(int argc, char** argv) {
  ghostrank::fill_missing_descriptors();
  ghostrank::keep_memory_for_the_end();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the file size limit fails with an error
  try {
    ghostrank::check_stack();
    const int status = ghostrank::play_verb(ghostrank::Argv(argv, argv + argc));
    // A failed write of --json - has been reported already.
    const bool said = status == static_cast<int>(ghostrank::ErrorKind::environment);
    if (!said && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
      throw ghostrank::Error(std::string("cannot write to stdout: ") + std::strerror(errno),
                             ghostrank::ErrorKind::environment);
    }
    return status;
  } catch (const ghostrank::Error& error) {
    std::fprintf(stderr, "ghostrank: %s\n", ghostrank::as_line(error.what()).c_str());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    std::fputs("ghostrank: out of memory: ask for less, or give this machine more\n", stderr);
    return static_cast<int>(ghostrank::ErrorKind::environment);
  } catch (const std::system_error& error) {
    const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
    std::fprintf(stderr, "ghostrank: %s: %s\n",
                 no_thread ? "a thread cannot be started" : "unexpected", error.what());
    return no_thread ? static_cast<int>(ghostrank::ErrorKind::environment) : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ghostrank: unexpected: %s\n", error.what());
    return 1;
  }
}
