#include "emulator/fabric/open.h"

#include <algorithm>
#include <array>

#include "emulator/fabric/datagrams.h"
#include "emulator/fabric/ofi/ofi.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

struct Maker {
  FabricKind kind;
  std::unique_ptr<NetworkFabric> (*open)(const FabricOptions& options);
  // Null: there are none to choose from, and no library.
  std::vector<FabricProvider> (*providers)();
  std::string (*version)();
};

constexpr Maker kPackets{FabricKind::packets, open_datagram_fabric, nullptr, nullptr};
#ifdef GHOSTRANK_WITH_LIBFABRIC
constexpr std::array<Maker, 2> kMakers{{
    {FabricKind::ofi, [](const FabricOptions& o) { return open_ofi_fabric({o}); },
     list_ofi_providers, ofi_version},
    kPackets,
}};
#else
constexpr std::array<Maker, 1> kMakers{kPackets};
#endif

static_assert(std::all_of(kMakers.begin(), kMakers.end(),
                          [](const Maker& m) { return is_network(m.kind); }));

const Maker& maker_of(FabricKind kind) {
  const auto* const row =
      std::find_if(kMakers.begin(), kMakers.end(), [&](const Maker& m) { return m.kind == kind; });
  if (row != kMakers.end()) return *row;
  throw Error(
      "fabric.kind: ofi is not in this ghostrank, which was built without libfabric; install "
      "libfabric-dev and build again, or play in one process with fabric.kind=memory or virtual",
      ErrorKind::environment);
}

}  // namespace

std::vector<FabricKind> network_kinds() {
  std::vector<FabricKind> kinds;
  for (const Maker& m : kMakers)
    if (m.providers) kinds.push_back(m.kind);
  return kinds;
}

void check_fabric_built(FabricKind kind) { maker_of(kind); }

std::unique_ptr<NetworkFabric> open_fabric(FabricKind kind, const FabricOptions& options) {
  return maker_of(kind).open(options);
}

std::vector<FabricProvider> list_fabric_providers(FabricKind kind) {
  const Maker& maker = maker_of(kind);
  return maker.providers ? maker.providers() : std::vector<FabricProvider>();
}

std::string fabric_library_version(FabricKind kind) {
  const Maker& maker = maker_of(kind);
  return maker.version ? maker.version() : "";
}

}  // namespace ghostrank
