/* Minimal text handling for options, /proc paths and status lines. */

struct text {
	char bytes[192];
	size_t length;
};

static size_t length_of(const char *string)
{
	size_t length = 0;
	while (string[length])
		length++;
	return length;
}

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* Returns the part of `string` after `prefix`, or null if it does not start with it. */
static const char *after(const char *string, const char *prefix)
{
	while (*prefix)
		if (*string++ != *prefix++)
			return NULL;
	return string;
}

/* Returns false for anything but a decimal number that fits. */
static bool parse_number(const char *string, uint64_t *number)
{
	uint64_t value = 0;
	if (!*string)
		return false;
	for (; *string; string++) {
		if (*string < '0' || *string > '9' || value > (UINT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (uint64_t)(*string - '0');
	}
	*number = value;
	return true;
}

/* Truncates text that does not fit. The result always ends in a zero byte. */
static void append(struct text *text, const char *string)
{
	while (*string && text->length < sizeof text->bytes - 1)
		text->bytes[text->length++] = *string++;
	text->bytes[text->length] = 0;
}

static void append_number(struct text *text, uint64_t number)
{
	char digits[21];
	size_t first = sizeof digits - 1;
	digits[first] = 0;
	do {
		digits[--first] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	append(text, digits + first);
}
