/* SPDX-License-Identifier: Apache-2.0 */
/* A wall clock that is corrected goes faster or slower for a while (by 5 ms a second, and more), so
 * between two anchors it goes evenly; or it is set, and then nobody knows when. */
#include "eval_clock.h"

#define SLEWED_MOST 20  /* one in so many: more, and it was set */
#define BEYOND CC_S(10) /* of the first or the last anchor */

static bool is_slewed(const struct eval_anchor *a, const struct eval_anchor *b)
{
	int64_t wall = (int64_t)(b->wall - a->wall), mono = (int64_t)(b->mono - a->mono);
	int64_t apart = wall > mono ? wall - mono : mono - wall;

	return wall > 0 && mono > 0 && apart <= mono / SLEWED_MOST;
}

/* On the line through @a and @b. */
static cc_ns on_line(const struct eval_anchor *a, const struct eval_anchor *b, uint64_t wall)
{
	double d = (double)(int64_t)(wall - a->wall);

	return a->mono +
	       (cc_ns)(int64_t)(d * (double)(b->mono - a->mono) / (double)(b->wall - a->wall));
}

static bool is_near(uint64_t a, uint64_t b) { return (a > b ? a - b : b - a) <= BEYOND; }

cc_ns eval_mono_of(const struct eval_anchor *v, size_t cnt, uint64_t wall)
{
	cc_ns found = 0;

	for (size_t i = 0; i + 1 < cnt; i++) {
		bool first = i == 0 && wall < v[0].wall && is_near(wall, v[0].wall);
		bool last =
			i + 2 == cnt && wall >= v[cnt - 1].wall && is_near(wall, v[cnt - 1].wall);

		if (!is_slewed(&v[i], &v[i + 1]) ||
		    (!first && !last && (wall < v[i].wall || wall >= v[i + 1].wall)))
			continue;
		if (found)
			return 0; /* set back: the same time came twice */
		found = on_line(&v[i], &v[i + 1], wall);
	}
	return found;
}
