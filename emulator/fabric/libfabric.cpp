// Loads libfabric when something first calls it: the six functions that it exports (the others are
// inline) load the library and forward to it. A linked libfabric would be loaded by every command,
// and on some systems it brings the library of the first InfiniPath adapters, which measures the
// clock for 0.2 s and sets signal handlers when it is loaded.
//
// Errors: Error(environment) when libfabric cannot be loaded or is too old. Threading: any thread.
#include <array>
#include <csignal>
#include <dlfcn.h>
#include <string>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "emulator/control/signals_blocked.h"
#include "profiles/error.h"

namespace {

using ghostrank::Error;
using ghostrank::ErrorKind;
using ghostrank::SignalsBlocked;

constexpr const char* kLibrary = "libfabric.so.1";

// Restores our handlers of these signals after loading a library that sets its own, and blocks
// SIGINT and SIGTERM meanwhile, so that the library's handlers cannot end the process.
class KeepSignals {
 public:
  KeepSignals() {
    for (std::size_t i = 0; i < kKept.size(); ++i) sigaction(kKept[i], nullptr, &before_[i]);
  }
  ~KeepSignals() {
    for (std::size_t i = 0; i < kKept.size(); ++i) sigaction(kKept[i], &before_[i], nullptr);
  }
  KeepSignals(const KeepSignals&) = delete;
  KeepSignals& operator=(const KeepSignals&) = delete;

 private:
  const SignalsBlocked blocked_;
  static constexpr std::array kKept{SIGINT, SIGTERM, SIGILL, SIGABRT, SIGBUS, SIGSEGV};
  std::array<struct sigaction, kKept.size()> before_{};
};

void* load() {
  const KeepSignals here;
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  throw Error(std::string("cannot load libfabric: ") + dlerror() +
                  "; install it (Debian, Ubuntu: libfabric1), or play in memory or virtual time",
              ErrorKind::environment);
}

template <typename Function>
Function* find(const char* name) {
  static void* const library = load();
  if (void* const found = dlsym(library, name)) return reinterpret_cast<Function*>(found);
  throw Error(std::string(kLibrary) + " has no " + name + "; install libfabric 1.17 or newer",
              ErrorKind::environment);
}

}  // namespace

extern "C" {

int fi_getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
               const fi_info* hints, fi_info** info) {
  static auto* const there = find<decltype(fi_getinfo)>("fi_getinfo");
  return there(version, node, service, flags, hints, info);
}

void fi_freeinfo(fi_info* info) {
  static auto* const there = find<decltype(fi_freeinfo)>("fi_freeinfo");
  there(info);
}

fi_info* fi_dupinfo(const fi_info* info) {
  static auto* const there = find<decltype(fi_dupinfo)>("fi_dupinfo");
  return there(info);
}

int fi_fabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context) {
  static auto* const there = find<decltype(fi_fabric)>("fi_fabric");
  return there(attr, fabric, context);
}

std::uint32_t fi_version() {
  static auto* const there = find<decltype(fi_version)>("fi_version");
  return there();
}

const char* fi_strerror(int error) {
  static auto* const there = find<decltype(fi_strerror)>("fi_strerror");
  return there(error);
}

}  // extern "C"
