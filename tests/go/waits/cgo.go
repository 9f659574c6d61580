// SPDX-License-Identifier: Apache-2.0

//go:build cgo && external

package main

import _ "runtime/cgo" // threads made by the C library
