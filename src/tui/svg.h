/* SPDX-License-Identifier: Apache-2.0 */
/* svg: the cells of a canvas as a picture, in the colours of a theme. */
#ifndef CC_SVG_H
#define CC_SVG_H

#include "canvas.h"
#include "theme.h"

/* Writes @c as it would look on a terminal with light text on black. 0 or -EIO. */
CC_NODISCARD int svg_write(const struct canvas *c, const struct theme *theme, FILE *out);

#endif
