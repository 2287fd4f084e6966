#include "emulator/fabric/open.h"

#include <algorithm>
#include <iterator>

#include "emulator/common/assert.h"
#include "emulator/fabric/ofi.h"

namespace ghostrank {
namespace {

struct Maker {
  FabricKind kind;
  std::unique_ptr<NetworkFabric> (*open)(const FabricOptions& options);
  std::vector<FabricProvider> (*providers)();
  std::string (*version)();
};

constexpr Maker kMakers[] = {
    {FabricKind::ofi, [](const FabricOptions& o) { return open_ofi_fabric({o}); },
     list_ofi_providers, ofi_version},
};

static_assert(std::all_of(std::begin(kMakers), std::end(kMakers),
                          [](const Maker& m) { return is_network(m.kind); }));

const Maker& maker_of(FabricKind kind) {
  const auto* const row = std::find_if(std::begin(kMakers), std::end(kMakers),
                                       [&](const Maker& m) { return m.kind == kind; });
  GHOSTRANK_ASSERT(row != std::end(kMakers));
  return *row;
}

}  // namespace

std::vector<FabricKind> network_kinds() {
  std::vector<FabricKind> kinds;
  for (const Maker& m : kMakers) kinds.push_back(m.kind);
  return kinds;
}

std::unique_ptr<NetworkFabric> open_fabric(FabricKind kind, const FabricOptions& options) {
  return maker_of(kind).open(options);
}

std::vector<FabricProvider> list_fabric_providers(FabricKind kind) {
  return maker_of(kind).providers();
}

std::string fabric_library_version(FabricKind kind) { return maker_of(kind).version(); }

}  // namespace ghostrank
