/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* handshake: what the flights of a TLS handshake weigh. Sizes only: no payload is ever looked at.
 */
#ifndef CC_HANDSHAKE_H
#define CC_HANDSHAKE_H

/* The client's second flight of TLS 1.3 with nothing after it: Finished by SHA-256 or SHA-384, with
 * or without a change of cipher before it. */
static inline int handshake_is_end13(unsigned long long bytes)
{
	return bytes == 58 || bytes == 64 || bytes == 74 || bytes == 80;
}

/* That of TLS 1.2 by the ciphers in use: a key exchange (X25519, P-256, P-384, P-521, RSA of 2048
 * bits), the change of cipher and Finished (ChaCha20: 8 bytes less than AES-GCM). */
static inline int handshake_is_end12(unsigned long long bytes)
{
	switch (bytes) {
	case 85:
	case 93:
	case 118:
	case 126:
	case 150:
	case 158:
	case 186:
	case 194:
	case 310:
	case 318:
		return 1;
	default:
		return 0;
	}
}

#endif
