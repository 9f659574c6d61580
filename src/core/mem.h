/* SPDX-License-Identifier: Apache-2.0 */
/* mem: growing arrays whose bytes are counted, so that the engine can keep to its budget. */
#ifndef CC_MEM_H
#define CC_MEM_H

#include "base.h"

struct mem {
	size_t used; /* bytes held by arrays counted here */
};

/* An array that grows: struct { T *p; uint32_t cnt, cap; }. All zero is an empty one. */
#define VEC(T)                     \
	struct {                   \
		T *p;              \
		uint32_t cnt, cap; \
	}

/* Makes room for @need elements of @size bytes at *@slot (a T *). Returns 0 or -ENOMEM, then
 * nothing has changed. */
CC_NODISCARD int mem_grow(struct mem *m, void *slot, uint32_t *cap, size_t need, size_t size);

/* Gives back room above @keep elements when it is worth a copy. */
void mem_shrink(struct mem *m, void *slot, uint32_t *cap, size_t keep, size_t size);

/* calloc and free that are counted. */
void *mem_alloc(struct mem *m, size_t size);
void *mem_get(struct mem *m, size_t size); /* the same, not zeroed */
void mem_free(struct mem *m, void *p, size_t size);

/* Objects of one size, cut from blocks that stay until slab_done(): for what comes and goes all the
 * time. Counted is what is in use. All zero but size is an empty one. */
struct slab {
	size_t size; /* of one, a multiple of 8 */
	void *free;  /* each begins with the next */
	void **blocks;
	uint32_t block_cnt, block_cap;
};
void *slab_alloc(struct mem *m, struct slab *s); /* not zeroed; NULL: no memory */
void slab_free(struct mem *m, struct slab *s, void *p);
void slab_done(struct mem *m, struct slab *s);

/* An array that comes and goes all the time and is short, as a rule: its first elements are one
 * object of a slab of VEC_FIRST * sizeof(T). */
#define VEC_FIRST 4u
CC_NODISCARD int mem_grow_short(struct mem *m, struct slab *s, void *slot, uint32_t *cap,
				size_t need, size_t size);
#define vec_reserve_short(m, s, v, n) \
	((n) <= (v)->cap ? 0 : mem_grow_short((m), (s), &(v)->p, &(v)->cap, (n), sizeof(*(v)->p)))
#define vec_done_short(m, s, v)                      \
	do {                                         \
		if ((v)->cap == VEC_FIRST) {         \
			slab_free((m), (s), (v)->p); \
			(v)->p = NULL;               \
			(v)->cnt = (v)->cap = 0;     \
		} else if ((v)->p) {                 \
			vec_done((m), (v));          \
		}                                    \
	} while (0)

#define vec_reserve(m, v, n) \
	((n) <= (v)->cap ? 0 : mem_grow((m), &(v)->p, &(v)->cap, (n), sizeof(*(v)->p)))
#define vec_shrink(m, v) mem_shrink((m), &(v)->p, &(v)->cap, (v)->cnt, sizeof(*(v)->p))
#define vec_done(m, v)                                             \
	do {                                                       \
		mem_free((m), (v)->p, (v)->cap * sizeof(*(v)->p)); \
		(v)->p = NULL;                                     \
		(v)->cnt = (v)->cap = 0;                           \
	} while (0)

/* Takes the first @n elements away. */
#define vec_drop_front(v, n)                                               \
	do {                                                               \
		(v)->cnt -= (n);                                           \
		memmove((v)->p, (v)->p + (n), (v)->cnt * sizeof(*(v)->p)); \
	} while (0)

/* The first of elements @lo to @hi (its index; @hi: none) for which `(v)->p[i].field >= value`;
 * they are sorted by field. */
#define vec_lower_bound_in(v, field, value, lo, hi)            \
	({                                                     \
		uint32_t lo_ = (lo), hi_ = (hi);               \
		while (lo_ < hi_) {                            \
			uint32_t mid_ = lo_ + (hi_ - lo_) / 2; \
			if ((v)->p[mid_].field < (value))      \
				lo_ = mid_ + 1;                \
			else                                   \
				hi_ = mid_;                    \
		}                                              \
		lo_;                                           \
	})

#define vec_lower_bound(v, field, value) vec_lower_bound_in(v, field, value, 0, (v)->cnt)

/* The same, looked for from @near on, which is no further away than the answer, as a rule. */
#define vec_lower_bound_near(v, field, value, near)                            \
	({                                                                     \
		uint32_t from_ = 0, to_ = (v)->cnt, at_ = CC_MIN((near), to_); \
		if (at_ < to_ && (v)->p[at_].field < (value)) {                \
			from_ = at_ + 1;                                       \
			for (uint32_t d_ = 1; d_ < to_ - at_; d_ *= 2) {       \
				if ((v)->p[at_ + d_].field >= (value)) {       \
					to_ = at_ + d_;                        \
					break;                                 \
				}                                              \
				from_ = at_ + d_ + 1;                          \
			}                                                      \
		} else {                                                       \
			to_ = at_;                                             \
			for (uint32_t d_ = 1; d_ <= at_; d_ *= 2) {            \
				if ((v)->p[at_ - d_].field < (value)) {        \
					from_ = at_ - d_ + 1;                  \
					break;                                 \
				}                                              \
				to_ = at_ - d_;                                \
			}                                                      \
		}                                                              \
		vec_lower_bound_in(v, field, value, from_, to_);               \
	})

/* Where an element with @value goes, after equal ones: at the end, as a rule. */
#define vec_place(v, field, value)                                                                 \
	((v)->cnt && (v)->p[(v)->cnt - 1].field > (value) ? vec_lower_bound(v, field, (value) + 1) \
							  : (v)->cnt)

#endif
