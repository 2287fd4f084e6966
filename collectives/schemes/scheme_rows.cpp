// The built-in schemes with agents. A job may name one whatever library it uses.
#include <array>

#include "collectives/libraries.h"
#include "collectives/schemes/switchml.h"

namespace ghostrank {

std::span<const Algorithm> scheme_rows() {
  static const std::array<Algorithm, 1> kRows{
      {{.library = kSchemes,
        .func = Func::all_reduce,
        .name = "switchml",
        .ends = [](int ranks, const Communicator& comm) {
          return switchml_ends(ranks, {comm.in_switch.slots, comm.in_switch.packet_elements,
                                       comm.in_switch.timeout_ps});
        }}}};
  return kRows;
}

}  // namespace ghostrank
