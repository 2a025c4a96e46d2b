/* Opening and closing the library. */
#ifndef FAKE_LIBRARY_H
#define FAKE_LIBRARY_H

#include "abi.h"

enum code library_open(void);
enum code library_close(void);

#endif
