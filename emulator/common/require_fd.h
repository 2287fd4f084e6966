// Turns a failed open into an error.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "profiles/error.h"
#include "switch/ports/fd.h"

namespace ghostrank {

// Takes the result of eventfd(2) or a similar call. Throws Error(environment) with the remedy if
// the call failed.
inline Fd require_fd(int fd) {
  if (fd < 0)
    throw Error(std::string("cannot open a file descriptor: ") + std::strerror(errno) +
                    "; raise the limit on open files (ulimit -n)",
                ErrorKind::environment);
  return Fd(fd);
}

}  // namespace ghostrank
