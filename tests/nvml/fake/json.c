#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32, LARGEST = 1 << 20 };

struct reader {
    const char *at, *end;
    int line, depth;
    const char *trouble; /* the first one; reading stops there */
};

static struct json *value(struct reader *reader);

static struct json *refuse(struct reader *reader, const char *trouble)
{
    if (reader->trouble == NULL)
        reader->trouble = trouble;
    return NULL;
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL)
        abort();
    return memory;
}

static void skip_space(struct reader *reader)
{
    for (; reader->at < reader->end && strchr(" \t\r\n", *reader->at) != NULL && *reader->at != '\0'; reader->at++)
        reader->line += *reader->at == '\n';
}

static bool take(struct reader *reader, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static bool digits(struct reader *reader)
{
    const char *start = reader->at;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
        reader->at++;
    return reader->at > start;
}

static struct json *number(struct reader *reader, struct json *made)
{
    const char *start = reader->at;
    char *stop = NULL;
    take(reader, "-");
    bool zero = reader->at < reader->end && *reader->at == '0';
    const char *whole = reader->at;
    if (!digits(reader) || (zero && reader->at > whole + 1))
        return refuse(reader, "a number or another value was expected");
    if (take(reader, ".") && !digits(reader))
        return refuse(reader, "a digit is missing after the point");
    if (take(reader, "e") || take(reader, "E")) {
        if (!take(reader, "-"))
            take(reader, "+");
        if (!digits(reader))
            return refuse(reader, "a digit is missing in the exponent");
    }
    errno = 0;
    made->kind = JSON_NUMBER;
    made->number = strtod(start, &stop);
    return errno == 0 && stop == reader->at ? made : refuse(reader, "a number is too large, or the locale is not C");
}

/* The characters between two quotes. The descriptions are ASCII, so of the escapes only those of single characters are known. */
static const char *text(struct reader *reader)
{
    static const char escapes[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (!take(reader, "\"")) {
        refuse(reader, "a text in quotes was expected");
        return NULL;
    }
    char *made = allocate((size_t)(reader->end - reader->at) + 1), *put = made;
    for (; reader->at < reader->end; reader->at++) {
        char here = *reader->at;
        if (here == '"') {
            reader->at++;
            return realloc(made, (size_t)(put - made) + 1);
        }
        if (here < ' ' || here > '~') {
            refuse(reader, "a text holds something that is not printable ASCII");
            return NULL;
        }
        if (here == '\\') {
            const char *known = ++reader->at < reader->end && *reader->at != '\0' ? strchr(escapes, *reader->at) : NULL;
            if (known == NULL) {
                refuse(reader, "an unknown escape in a text");
                return NULL;
            }
            here = means[known - escapes];
        }
        *put++ = here;
    }
    refuse(reader, "the file ends within a text");
    return NULL;
}

static struct json *add(struct json *parent, struct json **last, struct json *child)
{
    *(*last == NULL ? &parent->first : &(*last)->next) = child;
    *last = child;
    parent->count++;
    return parent;
}

static struct json *list(struct reader *reader, struct json *made)
{
    struct json *last = NULL;
    made->kind = JSON_LIST;
    skip_space(reader);
    if (take(reader, "]"))
        return made;
    for (;;) {
        struct json *entry = value(reader);
        if (entry == NULL)
            return NULL;
        add(made, &last, entry);
        skip_space(reader);
        if (take(reader, "]"))
            return made;
        if (!take(reader, ","))
            return refuse(reader, "a comma or a closing bracket was expected");
    }
}

static struct json *object(struct reader *reader, struct json *made)
{
    struct json *last = NULL;
    made->kind = JSON_OBJECT;
    skip_space(reader);
    if (take(reader, "}"))
        return made;
    for (;;) {
        skip_space(reader);
        int line = reader->line;
        const char *key = text(reader);
        if (key == NULL)
            return NULL;
        if (json_member(made, key) != NULL)
            return refuse(reader, "a key is there twice");
        skip_space(reader);
        if (!take(reader, ":"))
            return refuse(reader, "a colon was expected");
        struct json *member = value(reader);
        if (member == NULL)
            return NULL;
        member->key = key;
        member->line = line;
        add(made, &last, member);
        skip_space(reader);
        if (take(reader, "}"))
            return made;
        if (!take(reader, ","))
            return refuse(reader, "a comma or a closing brace was expected");
    }
}

static struct json *value(struct reader *reader)
{
    skip_space(reader);
    struct json *made = allocate(sizeof *made), *done = made;
    made->line = reader->line;
    if (++reader->depth > DEEPEST)
        return refuse(reader, "it is nested too deeply");
    if (take(reader, "{"))
        done = object(reader, made);
    else if (take(reader, "["))
        done = list(reader, made);
    else if (reader->at < reader->end && *reader->at == '"') {
        made->kind = JSON_TEXT;
        made->text = text(reader);
        done = made->text == NULL ? NULL : made;
    } else if (take(reader, "true") || take(reader, "false")) {
        made->kind = JSON_BOOL;
        made->truth = reader->at[-2] == 'u';
    } else if (!take(reader, "null"))
        done = number(reader, made);
    reader->depth--;
    return done;
}

const struct json *json_read(const char *path, char *trouble, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        snprintf(trouble, size, "%s: %s", path, strerror(errno));
        return NULL;
    }
    char *content = allocate(LARGEST + 1);
    size_t length = fread(content, 1, LARGEST, file);
    bool whole = !ferror(file) && feof(file);
    fclose(file);
    struct reader reader = {content, content + length, 1, 0, NULL};
    const struct json *made = whole ? value(&reader) : refuse(&reader, "it cannot be read, or is too large");
    skip_space(&reader);
    if (made != NULL && reader.at != reader.end)
        made = refuse(&reader, "something follows the document");
    if (made == NULL)
        snprintf(trouble, size, "%s:%d: %s", path, reader.line, reader.trouble);
    free(content);
    return made;
}

const struct json *json_member(const struct json *object, const char *key)
{
    for (const struct json *member = object->first; member != NULL; member = member->next)
        if (strcmp(member->key, key) == 0)
            return member;
    return NULL;
}
