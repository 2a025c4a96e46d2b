/* A strict reader of JSON: one document, no comments, no trailing commas, no key twice. What it read is never freed. */
#ifndef FAKE_JSON_H
#define FAKE_JSON_H

#include <stdbool.h>
#include <stddef.h>

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT };

struct json {
    enum json_kind kind;
    int line;
    const char *key; /* NULL but for a member of an object */
    bool truth;
    double number;
    const char *text;
    size_t count; /* of a list's entries or an object's members, which `first` and `next` walk through */
    struct json *first, *next;
};

/* The document in a file; NULL, with the reason in `trouble`, when it cannot be read or is not JSON. */
const struct json *json_read(const char *path, char *trouble, size_t size);

/* The member of that key, or NULL. */
const struct json *json_member(const struct json *object, const char *key);

#endif
