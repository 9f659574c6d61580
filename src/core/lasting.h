/* SPDX-License-Identifier: Apache-2.0 */
/* lasting: which records later ones lean on: whoever begins in the middle of a stream needs all of
 * them that came before. */
#ifndef CC_LASTING_H
#define CC_LASTING_H

#include "event.h"

static inline bool rec_is_lasting(unsigned int kind)
{
	const unsigned int kinds = 1u << CC_REC_STACK | 1u << CC_REC_TASK | 1u << CC_REC_MODULE |
				   1u << CC_REC_NAME | 1u << CC_REC_TARGET | 1u << CC_REC_OPTION |
				   1u << CC_REC_LISTEN;

	return kind < 32 && kinds >> kind & 1u;
}

#endif
