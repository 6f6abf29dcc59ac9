// The order of the 1024 codes of a panel: that of the registers of tensor instructions, which
// docs/packed.md draws.

#ifndef KG_WEIGHTS_PANEL_ORDER_H
#define KG_WEIGHTS_PANEL_ORDER_H

#include "weights/layer.h"

#define KG_PANEL_LANES 32                                      // of a warp
#define KG_PANEL_LANE_WORDS 4                                  // of a lane, one for each 16 rows
#define KG_PANEL_PACKED (KG_PANEL_LANES * KG_PANEL_LANE_WORDS) // words

void kg_panel_pack(const kg_panel panel, uint32_t packed[KG_PANEL_PACKED]);
void kg_panel_unpack(const uint32_t packed[KG_PANEL_PACKED], kg_panel panel);

// Of eight words, each of two halves of eight codes: code i of a half of word k becomes code k of
// that half of word i. What holds eight rows of 16 codes then holds 16 columns of eight, and back.
void kg_panel_transpose(uint64_t words[8]);

#endif
