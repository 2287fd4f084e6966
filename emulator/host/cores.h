// Which cores the engine threads of a process use. The mask that the process was started with is
// never widened: `cores` of a host selects from it. hwloc, which says which CPUs share a core and
// which are near a network interface, is seen by cores.cpp alone; without it every CPU counts as a
// core, and none as near.
//
//   cores given, or a mask narrower than the machine   one core per engine thread
//   the whole machine, as many threads as cores        the same: the kernel would put a thread that
//                                                      it wakes beside the one that woke it
//   the whole machine, fewer threads                   threads stay on the CPUs near their NIC,
//                                                      where those are fewer; else the kernel
//                                                      chooses
//   fewer CPUs than engine threads                     nothing is bound
//
// CPUs are the kernel's numbers. Threading: plain functions; binding concerns the calling thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ghostrank {

struct Cpu {
  int number = 0;
  int core = 0;     // of the machine; CPUs of one core have the same
  int sibling = 0;  // place among the CPUs of its core, from 0
  int numa_node = -1;
  std::vector<bool> near;  // by device: whether it is as near as any
};

std::string hwloc_version();             // empty: built without
std::vector<int> cpus_of_this_thread();  // ascending
std::vector<int> cpus_of_machine();      // that are online
bool bind_this_thread(const std::vector<int>& cpus);

// How long a thread of the engine stays awake before it blocks: about what going to sleep and
// waking up costs. 0 where the engine threads of the job, `threads` in all, would not have a core
// each if every process were on this machine: staying awake on a core that another one needs costs
// more than it saves.
std::chrono::nanoseconds awake_before_sleep(int threads);

// What is known of `numbers`; a device that is unknown, or near to all, is near to every CPU.
std::vector<Cpu> look_at_cpus(const std::vector<int>& numbers,
                              const std::vector<std::string>& devices);

// A CPU for each of `threads` threads, thread t near device t modulo `devices` where there is one
// left, and each on a core of its own as long as there is one. Empty: not enough CPUs.
std::vector<int> choose_cpus(const std::vector<Cpu>& cpus, int threads, int devices);

struct CoreWish {
  std::string cores;                 // of the job; empty: no wish
  std::vector<std::string> devices;  // of the process's data path, by rail
  int threads = 1;                   // engine threads of each process
};

// The CPUs that a process may use. Throws Error(environment) beginning with `where` when the wish
// goes beyond the CPUs it was started on.
std::vector<int> usable_cpus(const std::string& cores, const std::string& where);

struct CorePlan {
  std::vector<std::vector<int>> of_thread;  // the CPUs of each engine thread; empty: not bound
  std::string note;                         // why not although cores were meant to be used
};

// `first` and `all`: engine threads before those of this process, and altogether, of the processes
// that share `usable`; all < 0: others share a part of it.
CorePlan plan_cores(const CoreWish& wish, const std::vector<int>& usable, int first, int all);

// Keeps the calling thread, and those that it starts, on some CPUs for the length of a scope.
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
