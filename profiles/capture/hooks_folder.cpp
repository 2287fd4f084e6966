#include "profiles/capture/hooks_folder.h"

#include <filesystem>

#include "profiles/error.h"
#include "profiles/input/shipped.h"

namespace ghostrank {

std::string capture_hooks_folder() {
  namespace fs = std::filesystem;
  for (const std::string& directory : profile_directories()) {
    const fs::path folder = fs::path(directory) / "capture" / "hooks";
    std::error_code ignored;
    if (fs::exists(folder / "sitecustomize.py", ignored)) return fs::absolute(folder).string();
  }
  throw Error("capture/hooks/sitecustomize.py is in no profile directory; install ghostrank whole",
              ErrorKind::environment);
}

}  // namespace ghostrank
