/* SPDX-License-Identifier: Apache-2.0 */
/* confidence: access to the one table of evidence (CC_EVIDENCE in path.h). No rates of its own. */
#ifndef CC_CONFIDENCE_H
#define CC_CONFIDENCE_H

#include "path.h"

#define CC_CONF_HIGH 90   /* H at and above */
#define CC_CONF_MEDIUM 60 /* M at and above, L below */
#define CC_CONF_LOSS 89   /* the most a request can have with records lost inside */
#define CC_CONF_GAPS 59   /* the most it can have with less than 90 % accounted for */

/* Both take any number: 0 and "" beyond the table. */
uint8_t evidence_rate(unsigned int ev);     /* 0..100 */
const char *evidence_text(unsigned int ev); /* one line for people, without a full stop */

/* Lowest rate of a CC_EV_BIT() set; no evidence at all gives 0. */
uint8_t evidence_confidence(uint64_t set);

char confidence_letter(unsigned int confidence); /* 'H', 'M' or 'L' */

#endif
