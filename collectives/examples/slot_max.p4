// slot_max.cpp's switch as P4 for bmv2: of two elements the larger one stays in its slot. What is
// included is installed with ghostrank; this is all that is the scheme's own.
#define PORT 0x51C0
#define COMBINE(mine, theirs) if (theirs > mine) { mine = theirs; }
#include "slots_v1model.p4"
