// A kernel that tests replace: a program with own_kernel.cpp has a sendmmsg, sendmsg and ppoll that
// shadow the C library's.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <sys/socket.h>

namespace ghostrank::testing {

// Returns how many of `count` messages the kernel takes, or a negated errno. Empty: the real call.
extern std::function<int(const mmsghdr*, int count)> kernel_takes;
extern std::atomic<int> calls;  // of sendmmsg

// Returns the errno with which the kernel refuses a datagram of sendmsg; 0: it takes it.
extern std::function<int(int fd, const msghdr&)> kernel_refuses;
extern std::atomic<int> looks;  // calls of ppoll that do not wait

}  // namespace ghostrank::testing
