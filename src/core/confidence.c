/* SPDX-License-Identifier: Apache-2.0 */
#include "confidence.h"

static const struct {
	uint8_t rate;
	const char *text;
} table[CC_EV_CNT] = {
#define X(id, r, t) [CC_EV_##id] = { r, t },
	CC_EVIDENCE(X)
#undef X
};

uint8_t evidence_rate(unsigned int ev) { return ev < CC_EV_CNT ? table[ev].rate : 0; }

const char *evidence_text(unsigned int ev) { return ev < CC_EV_CNT ? table[ev].text : ""; }

uint8_t evidence_confidence(uint64_t set)
{
	uint8_t lowest = set ? 100 : 0;

	for (; set; set &= set - 1) {
		uint8_t rate = evidence_rate((unsigned int)__builtin_ctzll(set));

		lowest = CC_MIN(lowest, rate);
	}
	return lowest;
}

char confidence_letter(unsigned int confidence)
{
	if (confidence >= CC_CONF_HIGH)
		return 'H';
	return confidence >= CC_CONF_MEDIUM ? 'M' : 'L';
}
