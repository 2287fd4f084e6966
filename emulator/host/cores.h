// Which cores the engine threads of a process use. A process never widens the CPU mask it was
// started with; `cores` of a host selects from it. hwloc says which CPUs share a core and which are
// near a network interface, and only cores.cpp sees it. Without hwloc every CPU counts as a core,
// and as near to every interface.
//
//   cores given, or a mask narrower than the machine   one core per engine thread
//   the whole machine, as many threads as cores        the same: the kernel would put a thread that
//                                                      it wakes beside the thread that woke it
//   the whole machine, fewer threads                   threads stay on the CPUs near their NIC,
//                                                      where those are fewer; else the kernel
//                                                      chooses
//   fewer CPUs than engine threads                     nothing is bound
//
// CPUs have the kernel's numbers. Threading: plain functions; binding concerns the calling thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ghostrank {

struct Cpu {
  int number = 0;
  int core = 0;     // on the machine; equal for all CPUs of one core
  int sibling = 0;  // index among the CPUs of its core, from 0
  int numa_node = -1;
  std::vector<bool> near;  // by device: no CPU of the machine is nearer to it
};

std::string hwloc_version();             // empty: built without
std::vector<int> cpus_of_this_thread();  // ascending
std::vector<int> cpus_of_machine();      // all that are online
bool bind_this_thread(const std::vector<int>& cpus);

// How long an engine thread spins before it blocks: about the time that falling asleep and waking
// up take. 0 if the job's `threads` engine threads, of all processes, are more than the CPUs that
// the calling thread may use: spinning on a core that another needs costs more than it saves.
std::chrono::nanoseconds awake_before_sleep(int threads);

// Facts about the CPUs `numbers`. A device that is unknown or near to all CPUs counts as near to
// each.
std::vector<Cpu> look_at_cpus(const std::vector<int>& numbers,
                              const std::vector<std::string>& devices);

// One CPU for each of `threads` threads: thread t near device t modulo `devices` while such CPUs
// last, each on a core of its own while cores last. Empty: not enough CPUs.
std::vector<int> choose_cpus(const std::vector<Cpu>& cpus, int threads, int devices);

struct CoreWish {
  std::string cores;                 // of the job's host entry; empty: no wish
  std::vector<std::string> devices;  // of the process's data path, by rail
  int threads = 1;                   // engine threads of each process
};

// The CPUs that a process may use. Throws Error(environment) beginning with `where` if the wish
// names CPUs outside the mask that the process was started with.
std::vector<int> usable_cpus(const std::string& cores, const std::string& where);

struct CorePlan {
  std::vector<std::vector<int>> of_thread;  // the CPUs of each engine thread; empty: not bound
  std::string note;  // why threads are not bound although they should be; else empty
};

// Plans the CPUs of this process's engine threads. `first`: engine threads of earlier processes on
// the same `usable`; `all`: of all processes on it; < 0: others share only a part of `usable`.
CorePlan plan_cores(const CoreWish& wish, const std::vector<int>& usable, int first, int all);

// Binds the calling thread, and threads that it starts, to some CPUs for the length of a scope.
class StayOn {
 public:
  explicit StayOn(const std::vector<int>& cpus) : before_(cpus_of_this_thread()) {
    bind_this_thread(cpus);
  }
  ~StayOn() { bind_this_thread(before_); }
  StayOn(const StayOn&) = delete;
  StayOn& operator=(const StayOn&) = delete;

 private:
  std::vector<int> before_;
};

}  // namespace ghostrank
