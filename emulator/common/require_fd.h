// A descriptor that one cannot do without.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "profiles/error.h"
#include "switch/fd.h"

namespace ghostrank {

// `fd`: as eventfd(2) and the like give it. Throws Error(environment) with the remedy where that is
// none.
inline Fd require_fd(int fd) {
  if (fd < 0)
    throw Error(std::string("cannot open a file descriptor: ") + std::strerror(errno) +
                    "; raise the limit on open files (ulimit -n)",
                ErrorKind::environment);
  return Fd(fd);
}

}  // namespace ghostrank
