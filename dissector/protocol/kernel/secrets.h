/* What C files need of `secrets.c`. */
#ifndef SECRETS_H
#define SECRETS_H

#include "kernel.h"

int may_hold_secret(const uint8_t *data, int64_t size, const KernelSecretMarks *marks);

#endif
