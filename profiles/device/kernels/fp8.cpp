#include "profiles/device/kernels/fp8.h"

namespace ghostrank {

Fp8Casts fp8_casts(const Fp8Scaling& scaling, const LinearShape& layer, double element) {
  Fp8Casts out;
  // A tensor's cast; one that is gathered afterwards is not transposed.
  const auto cast = [&](std::vector<double>& kernels, double elements, bool gathered) {
    if (scaling.current) kernels.push_back(element * elements);
    kernels.push_back((element + (gathered ? 1 : scaling.copies())) * elements);
  };
  const auto transpose = [&](std::vector<double>& kernels, double elements) {
    if (scaling.transposes) kernels.push_back(2 * elements);
  };
  const double input = (layer.gathers_input ? layer.own_rows : layer.rows) * layer.in,
               gradient = (layer.gathers_gradient ? layer.own_rows : layer.rows) * layer.out;
  if (scaling.current || !layer.behind_norm)
    cast(out.forward, input, layer.gathers_input);
  else if (!layer.gathers_input)
    transpose(out.forward, input);
  cast(out.input, gradient, layer.gathers_gradient);
  if (layer.gathers_input) transpose(out.weight, layer.rows * layer.in);
  if (layer.gathers_gradient) transpose(out.weight, layer.rows * layer.out);
  cast(out.once, layer.in * layer.out, false);
  return out;
}

}  // namespace ghostrank
