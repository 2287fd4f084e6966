// A device profile: YAML to the device it describes.
#include "profiles/device/device.h"

#include <memory>

#include "profiles/error.h"
#include "profiles/load/locate.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const auto source =
      std::make_shared<const Source>(Source{"device.yaml", "device.yaml", true});
  try {
    const YamlValue given = parse_yaml(fuzz::text_of(data, size), source);
    const DeviceProfile device = make_device(resolve_profile(given, kDeviceProfile, ""));
    for (int type = 0; type <= static_cast<int>(DataType::uint8); ++type)
      fuzz::require(matmul_peak_tflops(device, static_cast<DataType>(type)) >= 0);
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
