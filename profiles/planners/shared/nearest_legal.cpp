#include "profiles/planners/shared/nearest_legal.h"

#include <algorithm>

namespace ghostrank {

std::string nearest_legal(int wanted, int most, const std::function<bool(int)>& legal) {
  int below = std::min(wanted - 1, most), above = wanted + 1;
  while (below > 0 && !legal(below)) --below;
  while (above <= most && !legal(above)) ++above;
  std::string text = below > 0 ? std::to_string(below) : "";
  if (above <= most) text += (text.empty() ? "" : " or ") + std::to_string(above);
  return text;
}

}  // namespace ghostrank
