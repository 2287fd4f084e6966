// The forms of the library "generic": textbook algorithms, one file per idea.
#pragma once

#include "collectives/textbook.h"

namespace ghostrank {

extern const Form kRingAllReduce, kRingReduceScatter, kRingAllGather;  // ring.cpp
extern const Form kBinomialBroadcast, kBinomialReduce;                 // binomial.cpp
extern const Form kRecursiveDoublingAllReduce;                         // recursive_doubling.cpp
extern const Form kPairwiseAllToAll;                                   // pairwise.cpp
extern const Form kSendRecv;                                           // send_recv.cpp
extern const Form kDisseminationBarrier;                               // dissemination.cpp

}  // namespace ghostrank
