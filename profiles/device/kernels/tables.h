// The tables of measured kernels in a device profile, CSV text each; microseconds.
//
//   kernels.products    type,operands,m,n,k,batch,us
//   kernels.transfers   kind,element,bytes,us
//   kernels.attention   type,direction,causal,dropout,batch,heads,key_heads,queries,keys,width,us
//
// Columns may come in any order; batch is 1 and key_heads as many as heads where there is no such
// column. A profile may name a CSV file instead, from its own folder.
//
// Errors: Error(usage) "FILE:LINE:COL: what; what to do": cells that are missing or no positive
// numbers, sizes twice, types without a peak, times that no such GPU reaches. Threading: pure
// functions.
#pragma once

#include <string>

#include "profiles/device/kernels/measured.h"
#include "profiles/input/keys.h"

namespace ghostrank {

KernelTables read_kernel_tables(const Settings& settings, const DeviceProfile& device);

// A measured kernel may seem so many times as fast as the published peak allows, because the peak's
// clock is not the highest; a faster one is refused.
inline constexpr double kAbovePeak = 1.25;

std::string products_csv(const KernelTables& tables);
std::string transfers_csv(const KernelTables& tables);
std::string attention_csv(const KernelTables& tables);

// Whether `text` is the path of a table, not a table.
bool names_kernel_table(const std::string& text);
inline constexpr const char* kKernelTables[] = {"products", "transfers", "attention"};

}  // namespace ghostrank
