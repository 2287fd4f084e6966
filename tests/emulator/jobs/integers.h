// For jobs whose sums a switch of OmniReduce makes: it adds int32 alone.
#pragma once

#include "profiles/workload/program.h"

namespace ghostrank::testing {

// Makes all all-reduces sums of int32.
inline void reduce_integers(Program& program) {
  for (OpList& stream : program.streams)
    stream = stream.changed([](Op op) {
      if (op.kind == Op::Kind::collective && op.func == Func::all_reduce)
        op.dtype = DataType::int32;
      return op;
    });
}

}  // namespace ghostrank::testing
