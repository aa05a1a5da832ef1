/* The compiler calls these by name for large structures, even without libc. */

void *memset(void *target, int byte, size_t length)
{
	char *bytes = target;
	while (length--)
		*bytes++ = (char)byte;
	return target;
}

void *memcpy(void *restrict target, const void *restrict source, size_t length)
{
	char *to = target;
	const char *from = source;
	while (length--)
		*to++ = *from++;
	return target;
}
