// The forms of the library "generic": textbook algorithms, one file per algorithm or idea.
//
// Threading: constant data.
#pragma once

#include "collectives/generic/textbook.h"

namespace ghostrank {

extern const Form kRingAllReduce, kRingReduceScatter, kRingAllGather, kRingAllGatherV;  // ring.cpp
extern const Form kRabenseifnerAllReduce, kRecursiveHalvingReduceScatter,
    kRecursiveDoublingAllGather;                    // halving.cpp
extern const Form kBruckAllGather, kBruckAllToAll;  // bruck.cpp
extern const Form kTwoLevelAllReduce, kTwoLevelReduceScatter, kTwoLevelAllGather,
    kTwoLevelBroadcast,
    kTwoLevelReduce;                              // two_level.cpp
extern const Form kChainBroadcast, kChainReduce;  // chain.cpp
extern const Form kBinomialBroadcast, kBinomialReduce, kBinomialScatter,
    kBinomialGather;  // binomial.cpp
extern const Form kLinearGather, kLinearScatter, kLinearBroadcast, kLinearAllToAll,
    kLinearAllGatherV;                                    // linear.cpp
extern const Form kRecursiveDoublingAllReduce;            // recursive_doubling.cpp
extern const Form kPairwiseAllToAll, kPairwiseAllToAllV;  // pairwise.cpp
extern const Form kSendRecv;                              // send_recv.cpp
extern const Form kDisseminationBarrier;                  // dissemination.cpp

// Throws std::invalid_argument as check_arguments() does, and if a channel has more slices than an
// int32 counts.
std::unique_ptr<Schedule> make_double_tree(const Collective& c,
                                           const Communicator& comm);  // double_tree.cpp

}  // namespace ghostrank
